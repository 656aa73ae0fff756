// How much more of a processor a server takes for a call while somebody looks at the very actor that is called, in alternating pairs. By hand, on a
// machine with two cores and nothing else to do:
//
//     TREBUCHET_PROGRAMS=.build/release node Web/test/browser/inspector-cost.mjs json|page|traces [ROUNDS [SECONDS]]
//
// `json` is a client that asks for overview, calls and actor each second, `page` what the page observes, and `traces` no inspector at all, but
// `--trace-sample 0.01` with a collector that throws away what it gets (TRACE_SAMPLE names another share). The servers are on the first core, with one
// reactor, and all else is on the second.
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

/** A server, where it is reached, and the link to its inspector. */
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

/** Seconds of a processor that it has taken. */
function used({ pid }) {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ")
    return (Number(fields[11]) + Number(fields[12])) / ticks
}

/** Microseconds for a call. `afterwards`: until what the calls have left to do is done. */
async function bench(server, afterwards) {
    const before = used(server)
    const { stdout } = await promisify(execFile)(program, ["bench", "rpc", "--url", server.url, "--seconds", seconds, "--json"])
    await wait(afterwards)
    return ((used(server) - before) / JSON.parse(stdout.trim().split("\n").at(-1)).messages) * 1e6
}

/** Looks at the actor. Gives what ends that. */
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
