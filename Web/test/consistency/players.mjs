// players.mjs SEED FIRST CALLS DIRECT LINK…: clients of the games of Tools/Consistency, one over each link, and a witness for each game
// without faults. Each LINK has the URLs of one or several servers, separated by commas. The output has the outcomes of calls and the findings of readers.
import { connect, TrebuchetError } from "../../dist/trebuchet.js"
import { WebSocket } from "../sockets.mjs"
import { BoardCheck, boardDigest, LedgerCheck, ledgerDigest, MoveCheck, RoundCheck } from "./checks.mjs"

const [seed, first, calls] = process.argv.slice(2, 5).map(Number)
const [direct, ...links] = process.argv.slice(5)
const games = 2
const callsPerPlayer = 100_000

const say = (line) => process.stdout.write(line + "\n")
const found = new Set()
/** Reports each finding once: a repeated fault would hide others. */
function finding(text) {
    if (!found.has(text)) say("finding " + text)
    found.add(text)
}

process.on("uncaughtException", (error) => finding("not caught: " + error?.stack?.replaceAll("\n", " ")))
// Errors of listeners are reported here.
console.error = (error) => finding("told: " + (error?.stack ?? error).toString().replaceAll("\n", " "))
// The parent process has ended.
process.stdin.on("end", () => process.exit(0))
const whereabouts = new Map()
process.stdin.on("data", (text) => {
    if (String(text).includes("status")) for (const [name, where] of whereabouts) say(`status ${name}: ${where()}`)
})

/** mulberry32 */
function randomOf(seed) {
    return (limit) => {
        seed = (seed + 0x6d2b79f5) | 0
        let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
        return ((t ^ (t >>> 14)) >>> 0) % limit
    }
}

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const totals = {
    values: 0, events: 0, eventBytes: 0, overflowsOfNewIncarnations: 0, overflowsOfReaders: 0, overflowsOfConnections: 0, stalls: 0,
    stalledBytes: 0, takenBack: 0, connections: 0, cuts: 0, shortStalls: 0,
}
const clients = []

function client(url) {
    const made = connect(url.split(","), { WebSocket, initialDelay: 5, maximumDelay: 100, timeout: 60_000 })
    clients.push(made)
    return made
}

/** Reads all streams of a game until it closes, and checks each value. */
async function watch(name, number, game) {
    const told = (text) => text && finding(`${name}: ${text}`)

    /** Reads until `isLast`; subscribes again after an overflow. */
    const read = (target, check, isLast) =>
        new Promise((resolve) => {
            const state = game.state(target)
            let last
            let end = () => {}
            whereabouts.set(`${name}, ${target}`, () => JSON.stringify([state.status.getSnapshot(), last]).slice(0, 200))
            const take = () => {
                const value = state.getSnapshot()
                if (value === undefined || value === last) return
                last = value
                totals.values++
                told(check.take(value))
                if (!isLast(value)) return
                endStatus()
                end()
                whereabouts.delete(`${name}, ${target}`)
                resolve(value)
            }
            const begin = () => {
                end = state.subscribe(take)
            }
            const endStatus = state.status.subscribe(() => {
                const { phase, error } = state.status.getSnapshot()
                if (phase !== "failed") return
                if (error.code !== "overflow" || !check.overflowed) told(`${target} ended: ${error.code} ${error.message}`)
                check.overflowed?.()
                end()
                begin()
            })
            begin()
        })

    const readMoves = async () => {
        const check = new MoveCheck(direct.includes(","))
        whereabouts.set(`${name}, moves`, () => `after ${check.number} of ${check.life}`)
        for (let isOver = false; !isOver; ) {
            try {
                for await (const move of game.events("observeMoves")) {
                    told(check.take(move))
                    isOver = move.isLast
                    if (isOver) break
                }
            } catch (error) {
                if (error.code !== "overflow") told(`the stream of moves ended: ${error.code} ${error.message}`)
                // The client has detected missing numbers: the server has skipped events without a notice.
                if (error.message.includes("have a gap")) told(`after ${check.number}: ${error.message}`)
                if (error.message.includes("unread events")) totals.overflowsOfReaders++
                check.overflowed()
            }
        }
        whereabouts.delete(`${name}, moves`)
        totals.events += check.count
        totals.eventBytes += check.bytes
        totals.overflowsOfNewIncarnations += check.overflowsOfNewIncarnations
        totals.overflowsOfConnections += check.overflowsOfConnections
        return check.calls
    }

    const rounds = Object.assign(new RoundCheck(), { overflowed() { this.isAfterOverflow = true } })
    const [ledger, board, , moved] = await Promise.all([
        read("observeLedger", new LedgerCheck(), (value) => value.isClosed),
        read("observeBoard", new BoardCheck(), (value) => value.isClosed),
        read("observeRound", rounds, (value) => value.isLast),
        readMoves(),
    ])
    say(`final ${number} ledger ${ledgerDigest(ledger)} ${name}`)
    say(`final ${number} board ${boardDigest(board)} ${name}`)
    const ran = new Set(ledger.calls)
    totals.takenBack += [...moved].filter((call) => !ran.has(call)).length
}

/** Makes the calls of a player, two at a time. */
async function play(number, game) {
    const name = `player ${number}`
    const ledger = game.state("observeLedger")
    const board = game.state("observeBoard")
    let seen = { life: 0, turn: 0 }
    // True if the board has arrived since the last request or resumption: before that, the server may respond first.
    let hasCome = false
    board.status.subscribe(() => (hasCome = false))
    board.subscribe(() => (hasCome = true))
    const note = (receipt, before) => {
        if (receipt.life === before.life && receipt.turn < before.turn) finding(`${name}: an answer of turn ${receipt.turn} after one of ${before.turn}`)
        seen = receipt
    }
    /** The change of a call is shown before its response. */
    const noteShown = (receipt) => {
        const shown = board.getSnapshot()
        if (hasCome && shown.life === receipt.life && shown.turn < receipt.turn) {
            finding(`${name}: an answer of turn ${receipt.turn} came before its board`)
        }
    }
    const put = async (call, target, args) => {
        try {
            const { turn } = await game.call(target, args, { idempotent: true })
            say(`acked ${call} ${turn}`)
            const shown = ledger.getSnapshot()
            if (ledger.status.getSnapshot().phase === "live" && shown.calls.length < turn) finding(`${name}: call ${call} was answered before the ledger had it`)
        } catch (error) {
            if (error.code === "unknownOutcome") say(`unknown ${call}`)
            else if (error.code === "unavailable") say(`refused ${call}`)
            else finding(`${name}: call ${call} ended with ${error.code} ${error.message}`)
        }
    }
    const lane = async (lane) => {
        const random = randomOf(seed * 1009 + number * 31 + lane)
        for (let index = lane; index < calls; index += 2) {
            await wait(random(16))
            const call = number * callsPerPlayer + index
            const padding = random(1001)
            const kind = random(10)
            const before = seen
            whereabouts.set(`${name}, lane ${lane}`, () => `waits for call ${call}`)
            try {
                if (kind < 4) await put(call, "put(_:padding:)", [call, padding])
                else if (kind < 6) await put(call, "putSlowly(_:padding:milliseconds:)", [call, padding, random(21)])
                else if (kind < 9) {
                    const receipt = await game.call("move(_:padding:)", [call, padding])
                    noteShown(receipt)
                    note(receipt, before)
                }
                else note(await game.call("look()"), before)
            } catch (error) {
                if (!(error instanceof TrebuchetError) || !["unknownOutcome", "unavailable"].includes(error.code)) {
                    finding(`${name}: a plain call ended with ${error.code} ${error.message}`)
                }
            }
        }
        whereabouts.delete(`${name}, lane ${lane}`)
    }
    await Promise.all([lane(0), lane(1)])
}

/** Parts of states, and the types of their values: those of another stream would differ. */
const parts = [
    ["observeLedger", "/calls", (value) => Array.isArray(value) && value.every(Number.isInteger)],
    ["observeLedger", "/isClosed", (value) => typeof value === "boolean"],
    ["observeBoard", "/cells", (value) => Array.isArray(value) && value.every(({ id }) => id !== undefined)],
    ["observeRound", "/number", Number.isInteger],
]

/** Observes for a moment, repeatedly, until the calls have ended, so that streams start and end during connection changes. */
async function visit(name, number, game) {
    const random = randomOf(seed * 1013 + number)
    while (!areCallsOver) {
        const [target, path, isRight] = parts[random(parts.length)]
        const part = game.state(target).filter({ path })
        const end = part.subscribe(() => {
            const value = part.getSnapshot()
            if (!isRight(value)) finding(`${name}: ${path} of ${target} was ${JSON.stringify(value)}`.slice(0, 200))
            totals.values++
        })
        // Sometimes longer than an unobserved stream is retained.
        await wait(random(60))
        end()
        await wait(random(3) ? random(20) : 100 + random(50))
    }
}

let areCallsOver = false
const readers = []
for (let game = 0; game < games; game++) readers.push(watch(`witness ${first}`, game, client(direct).actor(`games/${game}`)))
const players = links.map((url, index) => {
    const number = first + index
    const game = client(url).actor(`games/${number % games}`)
    readers.push(watch(`player ${number}`, number % games, game))
    for (let visitor = 0; visitor < 3; visitor++) visit(`player ${number}`, number * 10 + visitor, game)
    return play(number, game)
})
await Promise.all(players)
areCallsOver = true
say("calls-ended")
await Promise.all(readers)
say("totals " + JSON.stringify(totals))
say("readers-ended")
for (const made of clients) made.close()
