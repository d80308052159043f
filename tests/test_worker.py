"""A worker's job processes run the patched module: there is no hook that they could miss."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import sys
from functools import partial
from pathlib import Path

import pytest
import worker_setup
from _realtime_support import VERSION
from cli import run

from ctxlock.races.releases import has_full_scope, is_patched
from livekit.agents import JobExecutorType
from livekit.agents.ipc.proc_pool import ProcPool
from livekit.agents.voice import agent_activity

pytestmark = pytest.mark.skipif(not is_patched(VERSION), reason="stock has nothing of it")

METHODS = ["spawn"] if sys.platform == "win32" else ["spawn", "forkserver"]


@pytest.mark.parametrize("method", METHODS)
async def test_a_job_process_has_the_patched_module(method: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    pool = ProcPool(
        initialize_process_fnc=partial(worker_setup.report, report),
        job_entrypoint_fnc=worker_setup.entrypoint,
        session_end_fnc=None,
        simulation_end_fnc=None,
        num_idle_processes=1,
        initialize_timeout=120,
        close_timeout=60,
        session_end_timeout=60,
        inference_executor=None,
        job_executor_type=JobExecutorType.PROCESS,
        mp_ctx=multiprocessing.get_context(method),
        memory_warn_mb=0,
        memory_limit_mb=0,
        http_proxy=None,
        loop=asyncio.get_running_loop(),
    )
    ready = asyncio.Event()
    pool.on("process_ready", lambda _: ready.set())
    await pool.start()
    try:
        await asyncio.wait_for(ready.wait(), 120)
    finally:
        await pool.aclose()
    said = json.loads(report.read_text(encoding="utf-8"))
    assert said["pid"] != os.getpid()
    assert said["guard"] == ("RealtimeContextLock" if has_full_scope() else "Lock")
    assert said["file"] == agent_activity.__file__
    assert run("audit", Path(said["file"])) == 0
