
"""What logs and errors say, each with the part that nobody may see: written from the documentation of the services, not
from the shapes that `pipelines.secrets` knows."""

SECRETS = {
    "Azure SAS": (
        "https://acct.blob.core.windows.net/c/b?sv=2022-11-02&se=2026-01-01&sr=b&sp=r&sig=Zk9%2BqP1xW%2Fh3",
        "Zk9%2BqP1xW%2Fh3",
    ),
    "S3 presigned": (
        "https://b.s3.amazonaws.com/k?X-Amz-Date=20260101T000000Z&X-Amz-Signature=fe5f80f77d5fa3beca038a248ff027d0",
        "fe5f80f77d5fa3beca038a248ff027d0",
    ),
    "S3 session token": ("GET /k?X-Amz-Security-Token=IQoJb3JpZ2luX2VjEPT%2F&x=1 403", "IQoJb3JpZ2luX2VjEPT"),
    "GCS signed": ("x-goog-signature=247a2aa45f169edf4d187d54e7cc46e4", "247a2aa45f169edf4d187d54e7cc46e4"),
    "bearer header": ("request headers: Authorization: Bearer mF_9.B5f-4.1JqM", "mF_9.B5f-4.1JqM"),
    "basic header": ("{'Authorization': 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=='}", "QWxhZGRpbjpvcGVuIHNlc2FtZQ"),
    "bearer in prose": ("401 for Bearer eyXk29.abcd-1234", "eyXk29.abcd-1234"),
    "slashed password": ("mysql://root:pa/ss@h:3306/db refused", "pa/ss"),
    "password with an at": ("mongodb+srv://app:p@ss:w@cluster0.example/x", "p@ss:w"),
    "user is empty": ("redis://:s3cr3t-pw@cache:6379/0", "s3cr3t-pw"),
    "JDBC parameters": ("jdbc:postgresql://db/x?user=etl&password=hunter2&ssl=true", "hunter2"),
    "SQL Server": ("jdbc:sqlserver://h:1433;user=sa;password={p;w d};encrypt=true", "p;w d"),
    "ODBC": ("Driver={ODBC};Server=h;Uid=sa;Pwd=Tr0ub4dor&3;", "Tr0ub4dor"),
    "Azure storage": (
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1==;X=1",
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1",
    ),
    "service bus": ("Endpoint=sb://ns/;SharedAccessKeyName=Root;SharedAccessKey=abcDEF123+/=", "abcDEF123+/"),
    "JAAS": ('PlainLoginModule required username="alice" password="alice secret word";', "alice secret word"),
    "passphrase": ("ssl.key.passphrase: correct horse battery", "correct"),
    "quoted with escapes": (r'{"password": "a\"b c", "n": 1}', r"b c"),
    "json in json": (r'"body": "{\"client_secret\":\"9f8e 7d6c\"}"', "9f8e 7d6c"),
    "python dict": ("{'api_key': 'k-123 456', 'b': 2}", "k-123 456"),
    "ruby hash": (":secret_access_key => 'wJal rXUt'", "wJal rXUt"),
    "command line": ("spark-submit --conf a=b --password hunter2 app.py", "hunter2"),
    "curl": ("curl -u admin:hunter2 https://h/x", "hunter2"),
    "netrc": ("machine h login etl password hunter2", "hunter2"),
    "XML": ("<property><name>x</name><password>hunter2</password></property>", "hunter2"),
    "encoded form": ("body=user%3Da%26password%3Dhunter2", "hunter2"),
    "Slack hook": ("POST https://hooks.slack.com/services/T0AB/B0CD/x9Yz8WvUt", "x9Yz8WvUt"),
    "Discord hook": ("https://discord.com/api/webhooks/1234/AbC-dEf_1", "AbC-dEf_1"),
    "Telegram bot": (
        "https://api.telegram.org/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/send",
        "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
    ),
    "AWS id": ("The key AKIAIOSFODNN7EXAMPLE is not valid", "AKIAIOSFODNN7EXAMPLE"),
    "GitHub": (
        "fatal: could not read ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    ),
    "GitLab": ("remote: glpat-20charsAbCdEfGhIjKl denied", "20charsAbCdEfGhIjKl"),
    "Slack token": ("invalid_auth xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy", "pdFZKVeTuE8sk7oOcHrzqqgy"),
    "Google API": ("key AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe rejected", "AIzaSyDaGmWKa4JsXZ"),
    "Google query": ("https://maps.example/api?key=Qw3rTy9&x=1", "Qw3rTy9"),
    "Stripe": ("No such key: sk_live_4eC39HqLyjWDarjtT1zdp7dc", "4eC39HqLyjWDarjtT1zdp7dc"),
    "JWT": ("token rejected (eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N)", "dozjgNryP4J3jVmNHl0w5N"),
    "Databricks": (
        "https://x.cloud.example/?t=1 dapi1234567890abcdef1234567890abcdef",
        "1234567890abcdef1234567890abcdef",
    ),
    "PEM": (
        "key: -----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq\nqk==\n-----END RSA PRIVATE KEY-----",
        "MIIEpAIBAAKCAQEA7bq",
    ),
    "service account": (
        r'"private_key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----\n"',
        "MIIEvQIBADANBgkq",
    ),
    "cookie": ("Set-Cookie: session=8f14e45fceea167a; Path=/", "8f14e45fceea167a"),
    "custom header": ("-H 'X-Api-Key: 7f3a9c'", "7f3a9c"),
    "PyPI": ("403 pypi-AgEIcHlwaS5vcmcCJDU3 not allowed", "AgEIcHlwaS5vcmcCJDU3"),
    "Vault": ("permission denied hvs.CAESIJ1mZ0x4abcdefghij", "CAESIJ1mZ0x4abcdefghij"),
}
