"""A server under attack, in a temporary folder."""
import os, re, shutil, signal, socket, subprocess, tempfile, time, urllib.request

def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]

class Server:
    """`trebuchet serve`, which trusts the X-Forwarded-For of this machine. `{folder}` in options is its folder, to which `prepare` may
    add files."""

    def __init__(self, program, options=(), prepare=None):
        # Memory, unless TMPDIR says otherwise: synchronizing a disk may take 100 ms, also without an attack.
        memory = "/dev/shm" if os.path.isdir("/dev/shm") and "TMPDIR" not in os.environ else None
        self.folder = tempfile.mkdtemp(prefix="attacks-", dir=memory)
        if prepare:
            prepare(self.folder)
        self.port, self.admin = free_port(), free_port()
        self.log = open(f"{self.folder}/log", "w+")
        self.command = [
            program, "serve", "--port", str(self.port), "--admin", f"127.0.0.1:{self.admin}", "--reactors", "2",
            "--data", f"{self.folder}/data", "--trusted-proxies", "127.0.0.1",
            *(each.format(folder=self.folder) for each in options)]
        try:
            self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        except OSError:
            shutil.rmtree(self.folder)
            raise
        limit = time.monotonic() + 30
        while not self._responds():
            if self.process.poll() is not None or time.monotonic() > limit:
                text = self.text()
                self.stop()
                raise RuntimeError(f"the server did not start: {text}")
            time.sleep(0.1)

    def _responds(self):
        try:
            return bool(self.metrics())
        except OSError:
            return False

    def metrics(self):
        """Returns the values of /metrics by name, summed over labels; the longest turn is the maximum."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=30) as response:
            text = response.read().decode()
        values = {}
        for name, value in re.findall(r"^(\w+)(?:\{[^}]*\})? (\S+)$", text, re.M):
            join = max if "longest" in name else lambda one, other: one + other
            values[name] = join(values[name], float(value)) if name in values else float(value)
        return values

    def memory(self):
        """Returns the bytes of the process, and those that its sockets have in the kernel."""
        with open(f"/proc/{self.process.pid}/statm") as process:
            resident = int(process.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return resident, socket_bytes(self.port)

    def processor_time(self): return processor_time(self.process.pid)

    def text(self):
        with open(f"{self.folder}/log", errors="replace") as file:
            return file.read()

    def stop(self, keeps_folder=False):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.log.close()
        if not keeps_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

def socket_bytes(port):
    """Returns the kernel memory of the sockets with this local port. Without `ss`, that of all TCP sockets of the machine."""
    try:
        text = subprocess.run(["ss", "-tanmOH", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        with open("/proc/net/sockstat") as sockets:
            return int(re.search(r"^TCP:.* mem (\d+)", sockets.read(), re.M)[1]) * os.sysconf("SC_PAGE_SIZE")
    # skmem:(r0,rb131072,t0,tb87040,f0,w0,o0,bl0,d0): received, reserved, queued for sending, options, backlog.
    return sum(int(size) for size in re.findall(r"[(,](?:r|f|w|o|bl)(\d+)", text))

def processor_time(process):
    """Returns the seconds of processor time of a process, or of the whole machine (`None`)."""
    ticks = os.sysconf("SC_CLK_TCK")
    if process is None:
        with open("/proc/stat") as file:
            fields = [int(each) for each in file.readline().split()[1:]]
        return (sum(fields[:8]) - fields[3] - fields[4]) / ticks
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / ticks
