"""Runs one attack: a server, honest clients and the attacker, each a process."""
import asyncio, gc, multiprocessing, os, time, traceback
from dataclasses import dataclass, field
from attack import Attacker
from honest import serve_probes
from server import Server, processor_time

# The p99 of honest clients may be so much over the p99 of their timers' lag.
BOUND = 0.020
# Seconds without the attack.
BASELINE = 5
# Memory that the metrics need not account for: code, stacks and the allocator's, and as much again as they account for.
SPARE_BYTES = 96 << 20

@dataclass
class Outcome:
    # Of each probe: name, quantiles before and during the attack, failures, count, whether it is within the bounds.
    rows: list = field(default_factory=list)
    facts: dict = field(default_factory=dict)
    is_good: bool = True
    # Whether other programs slowed the honest clients.
    is_disturbed: bool = False

def run(attack, program, seconds, keeps_folder=False):
    """Returns the outcome of an attack; raises an error if one of the processes ends."""
    server = Server(program, attack.options, attack.prepare)
    processes = []
    def start(target, *arguments):
        here, there = multiprocessing.Pipe()
        process = multiprocessing.Process(target=target, args=(*arguments, there), daemon=True)
        process.start()
        processes.append(process)
        return here
    try:
        attacker = start(_attack, attack.function, server.port, seconds)
        _message(attacker, server)
        honest = start(serve_probes, server.port, attack.probes)
        _message(honest, server)
        ids = [server.process.pid, *(each.pid for each in reversed(processes)), os.getpid(), None]
        time.sleep(1)
        baseline = time.monotonic()
        time.sleep(BASELINE)
        metrics, memory, used = server.metrics(), server.memory(), [processor_time(each) for each in ids]
        begin, peak = time.monotonic(), memory
        attacker.send("begin")
        while not attacker.poll(0.2) and time.monotonic() < begin + seconds + 60:
            peak = [max(pair) for pair in zip(peak, server.memory())]
        end = time.monotonic()
        used = [(processor_time(each) - then) / (end - begin) for each, then in zip(ids, used)]
        others = max(0, used[4] - sum(used[:4]))
        growth = {name: value - metrics.get(name, 0) for name, value in server.metrics().items()}
        turn = server.metrics()["trebuchet_reactor_longest_turn_seconds"]
        grown, sockets = server.memory()[0] - memory[0], peak[1] - memory[1]
        notes = _message(attacker, server)
        honest.send("end")
        samples, failures = _message(honest, server)
        outcome = _judge(attack.probes, samples, (baseline, begin, end), others)
        accounted = growth["trebuchet_buffered_bytes"]
        is_accounted = grown + sockets <= SPARE_BYTES + 2 * max(0, accounted)
        outcome.is_good &= is_accounted and "missed" not in notes
        outcome.facts |= {
            "memory": f"grew by {grown / 1e6:.0f} MB, at most {(peak[0] - memory[0]) / 1e6:.0f} MB, sockets {sockets / 1e6:.0f} MB; "
                      f"accounted {accounted / 1e6:.0f} MB  {'ok' if is_accounted else 'MISSED'}",
            "reactors": f"longest turn {turn * 1000:.0f} ms, {growth['trebuchet_reactor_stalls_total']:.0f} turns over 100 ms",
            "processors": f"server {used[0]:.2f}, honest {used[1]:.2f}, attacker {used[2]:.2f}, other programs {others:.2f}", **notes}
        if failures:
            outcome.facts["failures"] = ", ".join(f"{count} × {text}" for text, count in list(failures.items())[:3])
        return outcome
    finally:
        for process in processes:
            process.kill()
        server.stop(keeps_folder)

def _attack(function, port, seconds, pipe):
    gc.disable()
    async def run():
        attacker = Attacker(port, seconds, pipe)
        notes = await function(attacker) or {}
        await attacker.until_end()
        # The connections are open while the memory of the server is read.
        pipe.send(notes)
        await asyncio.sleep(60)
    try:
        asyncio.run(run())
    except BaseException:
        pipe.send(traceback.format_exc())

def _message(pipe, server):
    """Returns the next message of a process."""
    message = pipe.recv() if pipe.poll(120) else "a process does not respond"
    if server.process.poll() is not None:
        raise RuntimeError(f"the server ended with {server.process.returncode}: {server.text()[-2000:]}")
    if isinstance(message, str) and message != "ready":
        raise RuntimeError(message)
    return message

def _judge(probes, samples, times, others):
    baseline, begin, end = times
    def durations(name, start, end): return [each[2] for each in samples if each[0] == name and start <= each[1] < end]
    outcome = Outcome()
    lag_before, lag = quantiles(durations("lag", baseline, begin)), quantiles(durations("lag", begin, end))
    outcome.is_disturbed = lag_before[1] > BOUND / 4 or others > 0.3 and lag[1] > BOUND / 4
    outcome.facts["lag of their timers"] = lag_before, lag
    for probe in probes:
        all = durations(probe.name, begin, end)
        before, during, failed = quantiles(durations(probe.name, baseline, begin)), quantiles(all), all.count(None)
        is_good = during[1] <= lag[1] + BOUND and failed * 100 <= len(all) and failed < len(all)
        outcome.rows.append((probe.name, before, during, failed, len(all), is_good))
        outcome.is_good &= is_good
        outcome.is_disturbed |= before[1] > BOUND / 2
        if not is_good:
            seconds = [quantiles(durations(probe.name, begin + each, begin + each + 1))[2] for each in range(int(end - begin))]
            outcome.facts[f"slowest in each second, {probe.name}"] = " ".join(f"{each * 1000:.0f}" for each in seconds)
    return outcome

def quantiles(durations):
    """Returns p50, p99 and the maximum of those that did not fail, in seconds."""
    values = sorted(each for each in durations if each is not None)
    return (values[len(values) // 2], values[min(len(values) - 1, len(values) * 99 // 100)], values[-1]) if values else (0, 0, 0)
