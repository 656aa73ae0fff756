// Measures the additional processor time of a call while its actor is inspected, in alternating pairs. Run manually, on an idle machine
// with two cores:
//
//     TREBUCHET_PROGRAMS=.build/release node Web/test/browser/inspector-cost.mjs json|page|traces [ROUNDS [SECONDS]]
//
// `json` requests the overview, calls and actor each second; `page` observes like the page; `traces` uses no inspector, but
// `--trace-sample 0.01` with a collector that discards its input (TRACE_SAMPLE sets another ratio). The servers run on the first core, with one
// reactor, and all other processes on the second.
import { execFile, execFileSync, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { createInterface } from "node:readline"
import { join } from "node:path"
import { promisify } from "node:util"
import { connect } from "../../dist/trebuchet.js"
import { WebSocket } from "../sockets.mjs"

const [kind = "json", rounds = "10", seconds = "3"] = process.argv.slice(2)
const program = join(process.env.TREBUCHET_PROGRAMS, "trebuchet")
const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
execFileSync("taskset", ["-cp", "1", String(process.pid)])
const ticks = Number(execFileSync("getconf", ["CLK_TCK"]))
const servers = []
process.once("exit", () => servers.forEach((server) => server.kill("SIGKILL")))

/** A server, its address, and the link to its inspector. */
async function serve(...options) {
    const all = ["-c", "0", program, "serve", "--port", "0", "--services", "none", "--examples", "--reactors", "1", ...options]
    const server = spawn("taskset", all, { stdio: ["ignore", "pipe", "ignore"] })
    servers.push(server)
    const found = { pid: server.pid }
    for await (const line of createInterface(server.stdout)) {
        found.url ??= /ws:\/\/\S+/.exec(line)?.[0]
        found.link ??= /^inspector: (\S+)/.exec(line)?.[1]
        if (line.startsWith("try: ")) return found
    }
    throw new Error("trebuchet serve ended")
}

/** The consumed processor time in seconds. */
function used({ pid }) {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ")
    return (Number(fields[11]) + Number(fields[12])) / ticks
}

/** Microseconds per call. `afterwards` waits until the remaining work of the calls is done. */
async function bench(server, afterwards) {
    const before = used(server)
    const { stdout } = await promisify(execFile)(program, ["bench", "rpc", "--url", server.url, "--seconds", seconds, "--json"])
    await wait(afterwards)
    return ((used(server) - before) / JSON.parse(stdout.trim().split("\n").at(-1)).messages) * 1e6
}

/** Inspects the actor. Returns a function that ends the inspection. */
function look({ link }) {
    const [address, token] = link.split("/#token=")
    if (kind === "page") {
        const client = connect(address.replace("http", "ws"), { WebSocket, token })
        const page = client.actor(`pages/${crypto.randomUUID()}`)
        for (const name of ["observeOverview", "observeView"]) page.state(name).subscribe(() => {})
        page.call("select(path:)", ["actors/counter?versions=200&earlier=1"]).catch(console.error)
        return () => client.close()
    }
    let last = 0
    const ask = async () => {
        for (const path of ["overview", `calls?after=${last}&limit=500`, "actors/counter?versions=200"]) {
            const answer = await fetch(`${address}/inspect/${path}`, { headers: { Authorization: `Bearer ${token}` } })
            last = (await answer.json()).last ?? last
        }
    }
    ask()
    const timer = setInterval(ask, 1_000)
    return () => clearInterval(timer)
}

let sink
if (kind === "traces") {
    sink = createServer((request, response) => request.on("data", () => {}).on("end", () => response.end("{}")))
    await new Promise((resolve) => sink.listen(0, "127.0.0.1", resolve))
}
const options = sink ? ["--otlp", `http://127.0.0.1:${sink.address().port}`, "--trace-sample", process.env.TRACE_SAMPLE ?? "0.01"] : ["--inspector"]
const plain = await serve(...(sink ? [] : options))
const other = await serve(...options)
const ratios = []
for (let round = 0; round < Number(rounds); round++) {
    const costs = new Map()
    for (const server of round % 2 ? [other, plain] : [plain, other]) {
        const stop = server === other && !sink ? look(server) : () => {}
        await wait(1_000)
        costs.set(server, await bench(server, sink ? 1_200 : 0))
        stop()
    }
    ratios.push(costs.get(other) / costs.get(plain) - 1)
    console.log(`${costs.get(plain).toFixed(4)} µs and ${costs.get(other).toFixed(4)} µs for a call: ${(100 * ratios.at(-1)).toFixed(1)} %`)
}
ratios.sort((one, another) => one - another)
const middle = (ratios[Math.floor((ratios.length - 1) / 2)] + ratios[Math.ceil((ratios.length - 1) / 2)]) / 2
console.log(`median of ${ratios.length}: ${(100 * middle).toFixed(1)} % (${(100 * ratios[0]).toFixed(1)} to ${(100 * ratios.at(-1)).toFixed(1)})`)
process.exit(0)
