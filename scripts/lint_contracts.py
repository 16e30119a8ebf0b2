"""Lints data contracts with datacontract-cli, the standard's own reader: `make lint`.

It runs in an environment of its own (scripts/setup.sh, from locks/datacontract.lock): beside Airflow and Great
Expectations it would hold back what they need.
"""

from __future__ import annotations

import sys

from datacontract.data_contract import DataContract


def main(files: list[str]) -> int:
    """A line for each file that is wrong; 1 where one is."""
    wrong = 0
    for file in files:
        run = DataContract(data_contract_file=file).lint()
        faults = [check.reason or check.name for check in run.checks or () if str(check.result.value) != "passed"]
        if run.result.value != "passed" or faults or not run.checks:
            wrong += 1
            sys.stdout.write(f"wrong {file}: {'; '.join(map(str, faults)) or run.result.value}\n")
    sys.stdout.write(f"{len(files) - wrong} of {len(files)} contracts pass datacontract lint\n")
    return 1 if wrong or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
