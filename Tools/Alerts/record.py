#!/usr/bin/env python3
"""Plays failures of servers at their real pace, and writes the metrics and the log of each.

    Tools/Alerts/record.py --server .build/release/trebuchet --output DIR [FAILURE…]

Each failure lasts for some minutes. DIR/FAILURE.yml has the series of the metrics that the alert rules use, sampled every 5 s, for
Examples/observability/alerts_test.yml; DIR/FAILURE.log has the lines of all logs, the steps, and the changes of /readyz?verbose. Needs
Redis, and root for a full disk.
"""
import argparse, asyncio, os, signal, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "Attacks"))
import client as raw  # noqa: E402
from series import Recording  # noqa: E402
from servers import Rig  # noqa: E402

INTERVAL = 5
NAMES = {
    "trebuchet_ready", "trebuchet_errors_total", "trebuchet_refusals_total", "trebuchet_requests_refused_total",
    "trebuchet_call_duration_seconds", "trebuchet_calls_active", "trebuchet_calls_waiting", "trebuchet_actors_unloadable",
    "trebuchet_alarms_failed_total", "trebuchet_buffered_bytes", "trebuchet_buffered_limit_bytes",
    "trebuchet_store_write_duration_seconds", "trebuchet_store_write_failures_total", "trebuchet_reactor_longest_turn_seconds",
    "trebuchet_reactor_stalls_total", "trebuchet_reactor_busy_seconds_total", "trebuchet_cluster_slots", "trebuchet_cluster_nodes",
    "trebuchet_cluster_engine_up", "trebuchet_cluster_slots_acquired_total", "trebuchet_cluster_slots_lost_total",
    "trebuchet_resumes_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds", "process_start_time_seconds",
}
NODES = ["one", "two", "three"]


class Player:
    def __init__(self, rig):
        self.rig, self.recording, self.steps, self.checks = rig, Recording(NAMES), [], {}
        self.next = time.monotonic()

    def step(self, text):
        self.steps.append(f"{time.strftime('%FT%T.000Z', time.gmtime())} STEP {text}\n")
        print(f"  {self.recording.count * INTERVAL:4} s  {text}", flush=True)

    def run(self, seconds, each=None):
        """Records for some seconds. Calls `each` before every sample."""
        for _ in range(round(seconds / INTERVAL)):
            if each:
                each()
            self.next += INTERVAL
            time.sleep(max(0, self.next - time.monotonic()))
            self.recording.add({name: self.rig.read(name) for name in self.rig.instances})
            for name in self.rig.instances:
                checks = self.rig.read(name, "/readyz?verbose")
                if checks != self.checks.get(name):
                    self.checks[name] = checks
                    what = "no response" if checks is None else checks.strip().replace("\n", "; ")
                    self.steps.append(f"{time.strftime('%FT%T.000Z', time.gmtime())} READYZ {name}: {what}\n")

    def text(self):
        lines = self.rig.logs().splitlines(keepends=True) + [f"{'':8}{line}" for line in self.steps]
        return "".join(sorted(lines, key=lambda line: line[8:]))


def cluster(program, *redis, folder=None):
    rig = Rig(program)
    try:
        rig.add_redis(*redis, folder=folder)
        for name in NODES:
            rig.add_node(name)
        rig.wait_until_ready()
        player = Player(rig)
        traffic(player)
        return player
    except BaseException:
        rig.stop()
        raise


def single(program, *options, **settings):
    rig = Rig(program)
    rig.add_server("one", *[each.format(folder=rig.folder) for each in options], **settings)
    rig.wait_until_ready()
    return Player(rig)


def traffic(player):
    """Starts a client that calls a counter of the cluster, and an own actor, through each node, twice a second."""
    code = """
import subprocess, sys, time
program, *urls = sys.argv[1:]
count = 0
while True:
    for url in urls:
        subprocess.run([program, "call", "--url", url, "--timeout", "8", f"counters/{count % 32}", "add(_:)", "1"], capture_output=True)
        count += 1
    time.sleep(0.2)
"""
    urls = [f"ws://127.0.0.1:{port}" for port in player.rig.ports.values()]
    player.rig.add("traffic", [sys.executable, "-c", code, player.rig.program, *urls])


def engine_killed(program):
    """Redis is killed, and starts again with its data after 90 s."""
    player = cluster(program)
    player.run(60)
    player.step("kill -9 of Redis")
    player.rig.processes["redis"].stop(signal.SIGKILL)
    player.run(90)
    player.step("Redis starts")
    player.rig.processes["redis"].start()
    player.run(90)
    return player


def engine_paused(program):
    """Redis stands still for 3.5 s, shorter than a lease, and later for 20 s."""
    player = cluster(program)
    player.run(60)
    for seconds in (3.5, 20):
        player.step(f"Redis is stopped for {seconds} s")
        player.rig.processes["redis"].send(signal.SIGSTOP)
        if seconds > INTERVAL:
            player.run(seconds)
        else:
            time.sleep(seconds)
        player.rig.processes["redis"].send(signal.SIGCONT)
        player.step("Redis continues")
        player.run(45)
    return player


def engine_full(program):
    """Redis has no memory left, for 90 s."""
    player = cluster(program)
    player.run(60)
    player.step("maxmemory 1mb: Redis refuses writes")
    player.rig.redis("config", "set", "maxmemory", "1mb")
    player.run(90)
    player.step("maxmemory 0")
    player.rig.redis("config", "set", "maxmemory", "0")
    player.run(60)
    return player


def engine_disk_full(program):
    """The disk of Redis is full, with appendfsync everysec."""
    folder = "/tmp/alerts-redis-disk"
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "disk", folder], check=True)
    try:
        player = cluster(program, "--appendfsync", "everysec", folder=folder)
        player.run(60)
        player.step("the disk of Redis is filled")
        subprocess.run(["dd", "if=/dev/zero", f"of={folder}/fill", "bs=4k"], capture_output=True)
        player.run(90)
        player.step("the disk is freed")
        os.remove(f"{folder}/fill")
        player.run(60)
        player.steps.append(f"{time.strftime('%FT%T.000Z', time.gmtime())} REDIS LOG\n" + open(player.rig.processes['redis'].log).read()[-3000:])
        return player
    finally:
        subprocess.run(["umount", "-l", folder])


def flushed(program):
    """FLUSHALL: each node ends with dataLoss, and its supervisor starts it again."""
    player = cluster(program)
    player.run(60)
    player.step("FLUSHALL")
    player.rig.redis("flushall")
    player.run(150)
    return player


def node_killed(program):
    """A node is killed, and stays away."""
    player = cluster(program)
    player.run(60)
    player.step("kill -9 of node three")
    player.rig.processes["three"].stop(signal.SIGKILL)
    player.run(150)
    return player


def node_suspended(program):
    """A node stands still for 30 s."""
    player = cluster(program)
    player.run(60)
    player.step("SIGSTOP of node three")
    player.rig.processes["three"].send(signal.SIGSTOP)
    player.run(30)
    player.step("SIGCONT of node three")
    player.rig.processes["three"].send(signal.SIGCONT)
    player.run(60)
    return player


def rolling_restart(program):
    """All nodes are restarted in order, one by one: no alert may fire."""
    player = cluster(program)
    player.run(60)
    for name in NODES:
        player.step(f"SIGTERM of {name}")
        player.rig.processes[name].send(signal.SIGTERM)
        player.run(20)
    player.run(60)
    return player


def foreign_links(program):
    """The nodes have certificates of different authorities: links fail, and messages go through Redis."""
    rig = Rig(program)
    try:
        rig.add_redis()
        for name in NODES:
            subprocess.run([program, "cluster", "init", f"{rig.folder}/files-{name}", "--nodes", name, "--days", "5"], check=True, capture_output=True)
            files = f"{rig.folder}/files-{name}"
            rig.add_node(
                name, "--cluster-certificate", f"{files}/{name}.pem", "--cluster-key", f"{files}/{name}-key.pem", "--cluster-authority",
                f"{files}/authority.pem")
        rig.wait_until_ready()
        player = Player(rig)
        traffic(player)
        player.run(90)
        return player
    except BaseException:
        rig.stop()
        raise


def crash_loop(program):
    """A node cannot start, because Redis is away: its supervisor starts it again and again."""
    player = cluster(program)
    player.run(30)
    player.rig.processes["redis"].stop(signal.SIGKILL)
    player.step("Redis is killed, then node three, whose --cluster-wait is 2 s")
    player.rig.processes["three"].command += ["--cluster-wait", "2"]
    player.rig.processes["three"].send(signal.SIGKILL)
    player.run(60)
    player.rig.processes["redis"].start()
    player.step("Redis starts")
    player.run(60)
    return player


def store_full(program):
    """The disk of the SQLite store is full."""
    folder = "/tmp/alerts-store-disk"
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "disk", folder], check=True)
    try:
        player = single(program, "--data", f"{folder}/data.db")
        traffic(player)
        player.run(60)
        player.step("the disk is filled")
        subprocess.run(["dd", "if=/dev/zero", f"of={folder}/fill", "bs=4k"], capture_output=True)
        player.run(90)
        player.step("the disk is freed")
        os.remove(f"{folder}/fill")
        player.run(60)
        return player
    finally:
        subprocess.run(["umount", "-l", folder])


def store_gone(program):
    """The file of the store is deleted."""
    player = single(program, "--data", "{folder}/data.db")
    traffic(player)
    player.run(30)
    player.step("the file is deleted")
    for suffix in ("", "-wal", "-shm"):
        try:
            os.remove(f"{player.rig.folder}/data.db{suffix}")
        except FileNotFoundError:
            pass
    player.run(60)
    return player


def descriptors(program):
    """Clients use all descriptors."""
    player = single(program, "--services", "none", prefix=["/bin/sh", "-c", 'ulimit -n 96; exec "$@"', "sh"])
    player.run(60)
    player.step("150 idle connections, of 96 descriptors")
    import socket
    peers = [socket.create_connection(("127.0.0.1", player.rig.ports["one"])) for _ in range(150)]
    player.run(90, each=lambda: None)
    for peer in peers:
        peer.close()
    player.step("they close")
    player.run(60)
    return player


def quotas(program):
    """A client exceeds the rate of a method, another its streams, and clients of one host their connections."""
    player = single(program, "--trusted-proxies", "127.0.0.1", "--data", "{folder}/data.db")
    player.run(60)
    port = player.rig.ports["one"]

    async def exceed():
        one = await raw.Client.open(port, host="192.0.2.1")
        calls = [raw.frame(raw.invocation(f"c{count}", "todos", "addTodo(title:)", ["x"])) for count in range(400)]
        await one.send(b"".join(calls))
        streams = [raw.frame(raw.invocation(f"s{count}", "todos", "observeState")) for count in range(400)]
        await one.send(b"".join(streams))
        held = []
        for _ in range(1_050):
            try:
                held.append(await raw.Client.open(port, host="192.0.2.2"))
            except raw.Lost as error:
                refused = str(error)
        await asyncio.sleep(1)
        for each in [one, *held]:
            each.task.cancel()
        return refused

    player.step("calls over a rate, 400 streams of a connection, 1,050 connections of a host")
    refused = None
    end = time.monotonic() + 90

    def each():
        nonlocal refused
        if time.monotonic() < end:
            refused = asyncio.run(exceed())
    player.run(120, each)
    player.step(f"they end; the last connection was refused: {refused}")
    player.run(60)
    return player


def overloaded(program):
    """More calls than a reactor can run."""
    player = single(program, "--reactors", "1", "--bench", "--services", "none")
    player.run(60)
    player.step("trebuchet bench rpc")
    log = open(f"{player.rig.folder}/bench.txt", "w")
    bench = subprocess.Popen([
        program, "bench", "rpc", "--url", f"ws://127.0.0.1:{player.rig.ports['one']}", "--connections", "64", "--in-flight", "64", "--seconds", "90"],
        stdout=log, stderr=log)
    player.run(90)
    bench.kill()
    print(open(f"{player.rig.folder}/bench.txt").read()[:500])
    player.step("it ends")
    player.run(60)
    return player


FAILURES = {each.__name__.replace("_", "-"): each for each in [
    engine_killed, engine_paused, engine_full, engine_disk_full, flushed, node_killed, node_suspended, rolling_restart, foreign_links,
    crash_loop, store_full, store_gone, descriptors, quotas, overloaded]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, metavar="PATH", help="the executable trebuchet")
    parser.add_argument("--output", required=True, metavar="DIR")
    parser.add_argument("failures", nargs="*", metavar="FAILURE", help="all: " + ", ".join(FAILURES))
    options = parser.parse_args()
    for name in options.failures:
        if name not in FAILURES:
            parser.error(f"unknown failure {name}: {', '.join(FAILURES)}")
    os.makedirs(options.output, exist_ok=True)
    for name in options.failures or FAILURES:
        print(f"{name}: {FAILURES[name].__doc__}", flush=True)
        player = FAILURES[name](os.path.abspath(options.server))
        try:
            with open(f"{options.output}/{name}.log", "w") as file:
                file.write(player.text())
            with open(f"{options.output}/{name}.yml", "w") as file:
                file.write(player.recording.text())
        finally:
            player.rig.stop()


if __name__ == "__main__":
    main()
