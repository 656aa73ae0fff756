#!/usr/bin/env python3
"""Runs the services of docker-compose.yml as processes of this machine: Redis, three nodes, nginx in front.

scripts/cluster builds the program and starts this. It also answers /control/, by which the page kills and starts nodes;
that is for pages of this machine alone.
"""

import argparse
import ctypes
import http.server
import json
import os
import queue
import shutil
import signal
import socket
import string
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NODES = ["one", "two", "three"]
MOST_NAMES = 64
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def die_with_parent():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def is_listening(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Failure(Exception):
    pass


class Process:
    """A program with a log, which can be ended and restarted."""

    def __init__(self, name, arguments, port, folder):
        self.name, self.arguments, self.port = name, arguments, port
        self.log = os.path.join(folder, name + ".log")
        self.child = None
        self.how = "not started"
        self.lock = threading.Lock()

    def start(self):
        with self.lock:
            if self.is_running:
                return
            with open(self.log, "ab") as log:
                # In a separate session, so that Ctrl-C reaches only this program, which ends all others in order.
                self.child = subprocess.Popen(
                    self.arguments, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                    preexec_fn=die_with_parent)
            self.how = "starting"
        deadline = time.monotonic() + 30
        while not is_listening(self.port):
            if not self.is_running or time.monotonic() > deadline:
                raise Failure(f"{self.name} did not start; see {self.log}:\n{self.tail()}")
            time.sleep(0.02)
        self.how = "running"

    @property
    def is_running(self):
        return self.child is not None and self.child.poll() is None

    def send(self, number, how):
        if self.is_running:
            self.how = how
            self.child.send_signal(number)

    def end(self, within):
        self.send(signal.SIGTERM, "stopping")
        if self.child is None:
            return
        try:
            self.child.wait(within)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def state(self):
        if self.is_running:
            return self.how
        # The status of a process that was not ended by this program.
        if self.child is None:
            return "not started"
        return {"killing": "killed", "stopping": "stopped"}.get(self.how, f"ended with {self.child.returncode}")

    def tail(self):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-10:])


class Cluster:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        redis, control, *nodes = free_ports(2 + len(NODES))
        self.control_port = control
        self.url = f"redis://127.0.0.1:{redis}"
        data = os.path.join(folder, "redis")
        os.makedirs(data, exist_ok=True)
        self.redis = Process("redis", [
            "redis-server", "--port", str(redis), "--bind", "127.0.0.1", "--dir", data, "--save", "",
            "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction",
        ], redis, folder)
        self.nodes = {
            name: Process(name, [
                options.trebuchet, "serve", "--examples", "--host", "127.0.0.1", "--port", str(port), "--cluster", self.url,
                "--node", name, "--node-address", "127.0.0.1:0", "--trusted-proxies", "127.0.0.1", "--static", os.path.join(HERE, "public"),
            ], port, folder)
            for name, port in zip(NODES, nodes)
        }
        self.nginx = Process("nginx", [
            find_nginx(), "-p", folder, "-c", os.path.join(folder, "nginx.conf"), "-e", os.path.join(folder, "nginx.log"),
        ], options.port, folder)
        self.starts = queue.Queue()
        self.owners = (0, (), {})
        self.owners_lock = threading.Lock()

    def write_nginx(self):
        with open(os.path.join(HERE, "nginx.conf.template")) as file:
            site = string.Template(file.read()).safe_substitute(
                LISTEN=f"127.0.0.1:{self.options.port}", CONTROL=f"127.0.0.1:{self.control_port}",
                **{"NODE_" + name.upper(): f"127.0.0.1:{node.port}" for name, node in self.nodes.items()})
        with open(os.path.join(self.folder, "site.conf"), "w") as file:
            file.write(site)
        # Without `user root`, the workers of an nginx that root starts run as a user that may not write into the folder.
        user = "user root;\n" if os.getuid() == 0 else ""
        places = "".join(
            f"    {kind}_temp_path {self.folder}/{kind};\n" for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        with open(os.path.join(self.folder, "nginx.conf"), "w") as file:
            file.write(
                f"{user}worker_processes 1;\npid {self.folder}/nginx.pid;\ndaemon off;\n"
                f"events {{ worker_connections 4096; }}\n"
                f"http {{\n    access_log off;\n{places}    include {self.folder}/site.conf;\n}}\n")

    def start(self):
        if is_listening(self.options.port):
            raise Failure(f"port {self.options.port} is in use; name another one with --port")
        self.write_nginx()
        self.redis.start()
        for node in self.nodes.values():
            node.start()
        self.nginx.start()

    def end(self):
        """Ends all in an order without losses: nodes hand over their slots while the coordination store runs."""
        self.nginx.end(5)
        threads = [threading.Thread(target=node.end, args=(20,)) for node in self.nodes.values()]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.redis.end(10)

    def run_tool(self, *arguments):
        done = subprocess.run(
            [self.options.trebuchet, "cluster", *arguments, "--cluster", self.url], capture_output=True, text=True, timeout=5)
        return [line.rsplit("  ", 1) for line in done.stdout.splitlines() if "  " in line]

    def owners_of(self, names):
        """Returns the owner node of each actor; queried at most twice a second, for all pages."""
        with self.owners_lock:
            when, known, owners = self.owners
            if known != names or time.monotonic() - when > 0.5:
                try:
                    owners = dict(self.run_tool("owner", *names)) if names else {}
                except subprocess.TimeoutExpired:
                    owners = {}
                self.owners = (time.monotonic(), names, owners)
            return owners

    def status(self, names):
        return {
            "nodes": [
                {"name": name, "process": node.child.pid if node.is_running else None, "state": node.state()}
                for name, node in self.nodes.items()
            ],
            "owners": self.owners_of(names),
        }

    def start_asked(self, within):
        """Starts the next requested node, or returns after `within` seconds without a request."""
        try:
            node, done = self.starts.get(timeout=within)
        except queue.Empty:
            return
        try:
            node.start()
            done.put(None)
        except Failure as failure:
            done.put(failure)

    def do(self, what, name):
        node = self.nodes.get(name)
        if node is None:
            raise Failure(f"there is no node '{name}'")
        if what == "kill":
            node.send(signal.SIGKILL, "killing")
        elif what == "stop":
            node.send(signal.SIGTERM, "stopping")
        elif what == "start":
            # A process ends with the thread that has started it, so the main thread starts it.
            done = queue.Queue()
            self.starts.put((node, done))
            failure = done.get()
            if failure:
                raise failure
        else:
            raise Failure(f"'{what}' is nothing that can be done; kill, stop and start are")


def find_nginx():
    named = os.environ.get("TREBUCHET_NGINX")
    found = named or shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if not found:
        raise Failure("there is no nginx: apt-get install nginx-light, or name one in TREBUCHET_NGINX")
    return found


class Control(http.server.BaseHTTPRequestHandler):
    cluster = None
    protocol_version = "HTTP/1.1"

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        # An unread body would be parsed as the next request.
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def is_allowed(self):
        """Rejects requests from pages of other sites, and host names that resolve to this machine."""
        host = self.headers.get("Host", "")
        origin = self.headers.get("Origin")
        names = [f"{name}:{self.cluster.options.port}" for name in ("localhost", "127.0.0.1")]
        return host in names and (origin is None or origin == "http://" + host)

    def do_GET(self):
        if not self.is_allowed():
            return self.answer(403, {"error": "only for pages of this machine"})
        path, _, query = self.path.partition("?")
        if path != "/control/status":
            return self.answer(404, {"error": "there is nothing"})
        names = tuple(name for name in query.split(",") if name and not name.startswith("-"))[:MOST_NAMES]
        self.answer(200, self.cluster.status(names))

    def do_POST(self):
        # A form of another site sends an Origin header; programs send none.
        if not self.is_allowed():
            return self.answer(403, {"error": "only for pages of this machine"})
        parts = self.path.split("/")
        try:
            if len(parts) != 4:
                raise Failure("POST /control/kill/NAME, /control/stop/NAME or /control/start/NAME")
            self.cluster.do(parts[2], parts[3])
        except Failure as failure:
            return self.answer(400, {"error": str(failure)})
        self.answer(200, self.cluster.status(()))

    def log_message(self, *_):
        pass


class ControlServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        # A page that was closed or reloaded does not wait for its response.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def main():
    parser = argparse.ArgumentParser(prog="scripts/cluster", description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8080, help="where nginx listens, at 127.0.0.1 (8080)")
    parser.add_argument("--data", help="keep Redis' file and the logs in this folder (one that is removed at the end)")
    parser.add_argument("--trebuchet", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = os.path.abspath(options.data) if options.data else tempfile.mkdtemp(prefix="trebuchet-cluster-")
    os.makedirs(folder, exist_ok=True)
    ended = threading.Event()
    # The parent process may have blocked them.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    cluster = None
    status = 0
    try:
        cluster = Cluster(options, folder)
        Control.cluster = cluster
        control = ControlServer(("127.0.0.1", cluster.control_port), Control)
        threading.Thread(target=control.serve_forever, daemon=True).start()
        cluster.start()
        print(f"cluster: open http://localhost:{options.port}", flush=True)
        print(f"cluster: logs in {folder}, Redis at {cluster.url}; Ctrl-C ends all", flush=True)
        while not ended.is_set():
            cluster.start_asked(within=0.2)
            for each in (cluster.redis, cluster.nginx):
                if not each.is_running:
                    raise Failure(f"{each.name} has {each.state()}; see {each.log}:\n{each.tail()}")
    except Failure as failure:
        print(f"cluster: {failure}", file=sys.stderr)
        status = 1
    finally:
        if cluster:
            cluster.end()
        if not options.data:
            shutil.rmtree(folder, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
