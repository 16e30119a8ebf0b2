"""Starts Java for a session, and passes on what it says but for the one line that is no news to anybody."""

from __future__ import annotations

import os
from collections.abc import Mapping
from threading import Thread

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

NO_NEWS = b"WARNING: Using incubator modules: jdk.incubator.vector"
"""Spark's scripts ask for that module whenever they start Java, and no option turns its warning off."""
LAST_WORDS = 2.0
"""Seconds to wait for the last output of a Java process that has ended."""


def start_java(settings: Mapping[str, str]) -> None:
    """Java with Spark for this process, by Spark's `settings`; nothing where there is one, which stays when its session
    is stopped. The output of Java to its stderr appears on this process's. Raises PySparkRuntimeError
    (JAVA_GATEWAY_EXITED) where Java ends at once."""
    if SparkContext._gateway is not None:
        return
    conf = SparkConf()
    for name, value in settings.items():
        conf.set(name, value)
    read, write = os.pipe()
    forward = Thread(target=_forward, args=(read,), name="stderr of Java", daemon=True)
    forward.start()
    try:
        gateway = launch_gateway(conf, {"stderr": write})  # type: ignore[no-untyped-call]
    except BaseException:
        os.close(write)
        forward.join(LAST_WORDS)
        raise
    os.close(write)
    SparkContext(conf=conf, gateway=gateway)


def _forward(read: int) -> None:
    with os.fdopen(read, "rb") as lines, open(2, "wb", buffering=0, closefd=False) as out:
        for line in lines:
            if line.strip() != NO_NEWS:
                out.write(line)
