"""Servers whose failures are recorded: Redis and processes of `trebuchet serve`, which a supervisor restarts."""
import os, re, shutil, signal, socket, subprocess, tempfile, threading, time, urllib.request


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Process:
    """A program with a log. With `restarts` a thread starts it again one second after it has ended by itself."""

    def __init__(self, name, command, folder, restarts=False):
        self.name, self.command, self.log, self.restarts = name, command, f"{folder}/{name}.log", restarts
        self.child, self.is_wanted = None, False

    def start(self):
        self.is_wanted = True
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if self.restarts:
            threading.Thread(target=self.supervise, args=[self.child], daemon=True).start()

    def supervise(self, child):
        child.wait()
        with open(self.log, "a") as log:
            log.write(f"{time.strftime('%FT%T', time.gmtime())} SUPERVISOR {self.name} ended with {child.returncode}\n")
        time.sleep(1)
        if self.is_wanted and self.child is child:
            self.start()

    def send(self, number):
        self.child.send_signal(number)

    def stop(self, number=signal.SIGTERM):
        self.is_wanted = False
        if self.child is None or self.child.poll() is not None:
            return
        self.child.send_signal(signal.SIGCONT)
        self.child.send_signal(number)
        try:
            self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


class Rig:
    """Servers in a folder in memory. `instances` maps the label `instance` to the port of an admin endpoint."""

    def __init__(self, program):
        self.program = program
        self.folder = tempfile.mkdtemp(prefix="alerts-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.processes, self.instances, self.ports = {}, {}, {}

    def add(self, name, command, restarts=False):
        process = self.processes[name] = Process(name, command, self.folder, restarts)
        process.start()
        return process

    def add_redis(self, *options, folder=None):
        self.redis_port = free_ports(1)[0]
        self.redis_folder = folder or f"{self.folder}/data"
        os.makedirs(self.redis_folder, exist_ok=True)
        redis = self.add("redis", [
            "redis-server", "--port", str(self.redis_port), "--bind", "127.0.0.1", "--dir", self.redis_folder, "--save", "",
            "--appendonly", "yes", "--maxmemory-policy", "noeviction", *options])
        while self.redis("ping").strip() != "PONG":
            time.sleep(0.1)
        return redis

    def redis(self, *command):
        return subprocess.run(["redis-cli", "-p", str(self.redis_port), *command], capture_output=True, text=True).stdout

    def add_server(self, name, *options, restarts=True, prefix=()):
        port, admin = free_ports(2)
        self.ports[name], self.instances[name] = port, admin
        return self.add(name, [
            *prefix, self.program, "serve", "--examples", "--port", str(port), "--admin", f"127.0.0.1:{admin}", "--log-level", "notice",
            *options], restarts)

    def add_node(self, name, *options):
        return self.add_server(
            name, "--cluster", f"redis://127.0.0.1:{self.redis_port}", "--node", name, "--node-address", "127.0.0.1:0", *options)

    def call(self, name, *call):
        return subprocess.run(
            [self.program, "call", "--url", f"ws://127.0.0.1:{self.ports[name]}", "--timeout", "20", *call], capture_output=True, text=True)

    def read(self, instance, path="/metrics"):
        """Returns the text of a page of the admin endpoint; nil if it does not respond, as for Prometheus after its timeout."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.instances[instance]}{path}", timeout=4) as response:
                return response.read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()
        except OSError:
            return None

    def is_ready(self):
        return all("\ntrebuchet_ready 1" in (self.read(each) or "") for each in self.instances)

    def wait_until_ready(self, limit=120):
        end = time.monotonic() + limit
        while not self.is_ready():
            if time.monotonic() > end:
                raise RuntimeError("the servers did not become ready:\n" + self.logs())
            time.sleep(0.5)

    def logs(self):
        lines = []
        for process in self.processes.values():
            if process.name == "redis" or not os.path.exists(process.log):
                continue
            with open(process.log, errors="replace") as log:
                lines += [(re.search(r"\d{4}-\d\d-\d\dT[\d:.]+", line), process.name, line) for line in log]
        dated = sorted((found[0], name, line) for found, name, line in lines if found)
        return "".join(f"{name:8}{line}" for _, name, line in dated)

    def stop(self):
        for process in self.processes.values():
            if process.name != "redis":
                process.is_wanted = False
        for process in sorted(self.processes.values(), key=lambda each: each.name == "redis"):
            process.stop(signal.SIGTERM if process.name != "redis" else signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
