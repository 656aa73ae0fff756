// The views, except that of one actor. Each has `element`, the `path` of its data at the server, and `show(…)` for that data; an empty path means the
// overview only. `reload()` is set from outside: it requests the data of a changed path.
import { Pager, Table, caller, card, format, h, place, sampled, setText } from "./inspector-parts.js"
import { Chart } from "./inspector-charts.js"
import { server } from "./inspector-server.js"

const head = (title, ...more) => h("div", { class: "head" }, h("h1", {}, title), more)
const part = (title, ...inner) => h("section", {}, h("h2", {}, title), inner)

export class Overview {
    constructor(metrics) {
        this.metrics = metrics
        const { histories: of } = metrics
        this.charts = [
            new Chart("Calls per second", of.calls, format.rate, { floor: 1 }),
            new Chart("Latency, median", of.median, format.time, { second: of.p99 }).named("99 %"),
            new Chart("Connections", of.connections, format.count, { floor: 1 }),
            new Chart("Longest turn", of.turn, format.time, { floor: 0.001 }),
            new Chart("Deliveries per second", of.deliveries, format.rate, { floor: 1 }),
            new Chart("Versions skipped per second", of.skipped, format.rate, { floor: 1 }),
            new Chart("Memory", of.memory, format.bytes, { second: of.buffered }).named("buffered"),
            new Chart("Processor", of.processor, (share) => `${Math.round(100 * share)} %`, { floor: 0.1 }),
        ]
        this.facts = h("span", { class: "soft" })
        this.methods = new Table(
            [
                { title: "Method", cell: ({ type, method }) => [method, h("span", { class: "soft" }, ` ${type}`)] },
                { title: "Calls/s", kind: "right", cell: (row) => format.rate(row.rate) },
                { title: "Calls", kind: "right", cell: ({ calls }) => format.count(calls) },
                { title: "Mean", kind: "right", cell: ({ calls, seconds }) => format.time(calls ? seconds / calls : null) },
            ],
            { key: ({ type, method }) => `${type} ${method}`, empty: "No calls yet." })
        this.reactors = new Table(
            [
                { title: "Reactor", cell: ({ name }) => name },
                { title: "Busy", kind: "right", cell: ({ busy }) => (busy === null ? "–" : `${Math.round(100 * busy)} %`) },
                { title: "Turns/s", kind: "right", cell: ({ rate }) => format.rate(rate) },
                { title: "Longest turn", kind: "right", cell: ({ longestTurnSeconds: time }) => format.time(time) },
                { title: "Stalls", kind: "right", cell: ({ stalls }) => format.count(stalls) },
            ],
            { key: ({ name }) => name })
        this.element = h(
            "div", {}, head("Overview", this.facts), h("div", { class: "charts" }, this.charts.map(({ element }) => element)),
            h("div", { class: "two" }, part("Methods with the most calls", card(this.methods)), part("Reactors", card(this.reactors))))
    }

    path = ""

    show() {
        const { now, rates } = this.metrics
        if (!now) return
        for (const chart of this.charts) chart.draw()
        const { calls, deliveries } = now
        setText(
            this.facts,
            [
                `${now.status}, up ${format.age(now.time - (now.process?.started ?? now.time))}`, format.counted(now.actors, "actor"),
                format.counted(now.streams, "stream"), `${format.counted(calls.active, "call")} in flight`,
                `${format.counted(deliveries.patch, "patch", "patches")}, ${format.counted(deliveries.whole, "whole value")} and ${format.counted(deliveries.event, "event")} sent`,
            ].join(" · "))
        this.methods.show(now.methods.slice(0, 20).map((row) => ({ ...row, rate: rates.methods.get(`${row.type} ${row.method}`) ?? null })))
        this.reactors.show(now.reactors.map((row, at) => ({ ...row, ...rates.reactors[at] })))
    }
}

export class Actors {
    constructor() {
        this.search = h("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter by name", oninput: () => this.#search() })
        this.type = h("select", { "aria-label": "Type", onchange: () => this.#search() }, h("option", { value: "" }, "All types"))
        this.count = h("span", { class: "soft" })
        this.patterns = h("p", { class: "note" })
        this.pager = new Pager(() => this.reload())
        this.table = new Table(
            [
                { title: "Name", cell: ({ name, ready }) => h("a", { href: ready ? place.actor(name) : null, class: "mono" }, name) },
                { title: "Type", cell: ({ type }) => type },
                { title: "Reactor", kind: "short", cell: ({ reactor, ready }) => reactor ?? (ready ? "any thread" : "–") },
                {
                    title: "", kind: "short", cell: ({ ready, onDemand, clustered }) => [
                        !ready && h("span", { class: "chip" }, "not loaded"), onDemand && h("span", { class: "chip" }, "on demand"),
                        clustered && h("span", { class: "chip" }, "clustered"),
                    ],
                },
            ],
            { key: ({ name }) => name, empty: "No matching actors." })
        this.element = h(
            "div", {}, head("Actors", this.count), h("div", { class: "tools" }, this.search, this.type), card(this.table), this.pager.element,
            this.patterns)
    }

    #search() {
        this.pager.page = 0
        this.reload()
    }

    get path() {
        const asked = new URLSearchParams({ page: this.pager.page, size: 50 })
        if (this.search.value) asked.set("search", this.search.value)
        if (this.type.value) asked.set("type", this.type.value)
        // The server reads percent encoding only, in which a plus is a plus.
        return `actors?${asked.toString().replaceAll("+", "%20")}`
    }

    show(shown) {
        setText(this.count, `${format.count(shown.all)} total`)
        this.table.show(shown.actors)
        this.pager.show(shown, "actors")
        this.#showTypes(shown.types)
        const names = shown.patterns.map(({ names, type }) => `${names} (${type})`).join(", ")
        setText(this.patterns, names && `Activated by calls: ${names}.`)
    }

    #showTypes(types) {
        const options = [["", "All types"], ...types.map(({ type, actors }) => [type, `${type} (${format.count(actors)})`])]
        const { value } = this.type
        if (this.type.options.length !== options.length || options.some(([name], at) => this.type.options[at].value !== name)) {
            this.type.replaceChildren(...options.map(([name, text]) => h("option", { value: name }, text)))
            this.type.value = value
        } else options.forEach(([, text], at) => setText(this.type.options[at], text))
    }
}

export class Connections {
    constructor({ writes }) {
        this.count = h("span", { class: "soft" })
        this.pager = new Pager(() => this.reload())
        this.problem = h("p", { class: "problem", role: "alert", hidden: true })
        this.table = new Table(
            [
                { title: "Connection", kind: "right", cell: ({ connection }) => h("a", { href: place.connection(connection) }, String(connection)) },
                { title: "Address", kind: "short", cell: ({ address }) => address ?? "this process" },
                { title: "Principal", kind: "short", cell: ({ principal }) => principal ?? h("span", { class: "soft" }, "anonymous") },
                { title: "Protocol", kind: "right", cell: ({ protocol }) => (protocol ? String(protocol) : "–") },
                { title: "Age", kind: "right", cell: ({ seconds }) => format.age(seconds) },
                { title: "Streams", kind: "right", cell: ({ streams }) => format.count(streams) },
                { title: "Calls", kind: "right", cell: ({ calls }) => format.count(calls) },
                { title: "Queue", kind: "right", cell: ({ bufferedBytes }) => format.bytes(bufferedBytes) },
                {
                    title: "", cell: ({ connection, writable, draining, ofNode }) => [
                        h("a", { href: place.log({ connection }), class: "chip" }, "log"), !writable && h("span", { class: "chip bad" }, "not writable"), draining && h("span", { class: "chip" }, "draining"),
                        ofNode && h("span", { class: "chip" }, "node"),
                    ],
                },
                {
                    title: "Last error", cell: ({ lastError: error }) =>
                        error ? h("span", { title: format.clock(error.time) }, h("span", { class: "bad" }, error.error), ` ${error.refused ?? (reasonOf(error) || error.method || "")}`) : "",
                },
                ...(writes ? [{ title: "", kind: "right", cell: ({ connection }) => h("button", { type: "button", "data-close": connection }, "Close") }] : []),
            ],
            { key: ({ connection }) => connection, empty: "No connections." })
        this.element = h("div", {}, head("Connections", this.count), this.problem, card(this.table), this.pager.element)
        this.table.body.addEventListener("click", ({ target }) => target.dataset?.close && this.#close(target.dataset.close))
    }

    async #close(number) {
        try {
            await server.closeConnection(Number(number))
            this.problem.hidden = true
        } catch (error) {
            this.problem.hidden = false
            setText(this.problem, error.message)
        }
    }

    get path() {
        return `connections?page=${this.pager.page}&size=100`
    }

    show(shown) {
        setText(this.count, `${format.count(shown.found)} open`)
        this.table.show(shown.connections)
        this.pager.show(shown, "connections")
    }
}

/** The arguments of a call, as far as they are known. */
export function values({ arguments: list, argumentBytes: bytes, redacted }) {
    if (!list?.length && !bytes && !redacted) return null
    return h("span", { class: "mono soft" }, redacted ? " redacted" : bytes ? ` ${format.bytes(bytes)}` : ` ${format.json(list, 120)}`)
}

/** The reason of a rejection, or the thrown error with its number in the log. */
function reasonOf({ refused, thrown, errorNumber, reason }) {
    if (refused) return `rejected: ${refused}`
    return thrown ? `${thrown}${errorNumber ? `, error ${errorNumber} in the log` : ""}` : (reason ?? "")
}

/** Columns of calls. */
export const callColumns = {
    time: { title: "Ended", kind: "short mono", cell: ({ time, seconds }) => format.clock(time && time + 1000 * (seconds ?? 0)) },
    method: { title: "Method", kind: "name", cell: (call) => [call.method ?? "–", values(call)] },
    actor: { title: "Actor", kind: "name", cell: ({ actor }) => (actor ? h("a", { href: place.actor(actor), class: "mono" }, actor) : "–") },
    caller: { title: "Caller", kind: "short", cell: caller },
    took: { title: "Duration", kind: "right", cell: ({ seconds }) => format.time(seconds) },
    outcome: {
        title: "Outcome", cell: (call) =>
            call.error ? [h("span", { class: "bad" }, call.error), ` ${reasonOf(call)}`] : h("span", { class: "soft" }, "answered"),
    },
}

export class Calls {
    calls = []
    last = 0

    constructor(metrics, parameters) {
        this.metrics = metrics
        this.connection = Number(parameters.get("connection")) || null
        this.search = h("input", { type: "search", placeholder: "Actor, method or principal", "aria-label": "Search", oninput: () => this.#show() })
        this.failed = h("input", { type: "checkbox", checked: parameters.has("failed"), onchange: () => this.#show() })
        this.count = h("span", { class: "soft" })
        const { time, method, actor, caller, took, outcome } = callColumns
        this.table = new Table([time, method, actor, caller, took, outcome], { key: ({ number, time }) => `${number} ${time}`, still: true, empty: "None since recording began." })
        const all = this.connection && [
            h("a", { href: "#/calls", class: "chip" }, `connection ${this.connection} ✕`), " ",
            h("a", { href: place.log({ connection: this.connection }), class: "chip" }, "Log"),
        ]
        this.element = h(
            "div", {}, head("Calls", this.count),
            h("div", { class: "tools" }, this.search, h("label", { class: "check" }, this.failed, "errors only"), all), card(this.table))
    }

    get path() {
        return this.connection ? `calls?connection=${this.connection}&limit=500` : "calls?limit=500"
    }

    show({ last, calls, pauses, recorded, refused = 0 }) {
        const { answered } = this.metrics.now.calls
        const errorsSent = Object.values(this.metrics.now.errors).reduce((sum, count) => sum + count, 0)
        // Recording restarts after a time without observers.
        if (last < this.last) this.calls = []
        if (last < this.last || !this.first) this.first = { recorded, answered, refused, errorsSent }
        this.latest = { recorded, answered, refused, errorsSent }
        this.pauses = pauses
        this.calls = [...calls.filter(({ number }) => number > (this.calls[0]?.number ?? 0)), ...this.calls].slice(0, 2_000)
        this.last = last
        this.#show()
    }

    #show() {
        const searched = this.search.value.toLowerCase()
        const found = this.calls.filter(
            (call) =>
                (!this.failed.checked || call.error) &&
                `${call.actor} ${call.method} ${call.principal ?? ""}`.toLowerCase().includes(searched))
        this.table.show(found.slice(0, 100))
        setText(this.count, `${format.count(found.length)} of the last ${format.count(this.calls.length)}${this.pauses > 0 ? sampled(this.first, this.latest) : ""}`)
    }
}

export class Errors {
    constructor(metrics) {
        this.metrics = metrics
        const table = (title, empty) =>
            new Table(
                [
                    { title, cell: ({ name }) => name },
                    { title: "Per second", kind: "right", cell: ({ rate }) => format.rate(rate) },
                    { title: "Total", kind: "right", cell: ({ count }) => format.count(count) },
                ],
                { key: ({ name }) => name, empty })
        this.tables = {
            errors: table("Code", "No errors."), refusals: table("Limit", "No rejections by limits."),
            refusedRequests: table("Status", "No rejected requests."),
        }
        const { time, method, actor, caller, outcome } = callColumns
        this.recent = new Table([time, method, actor, caller, outcome], { key: ({ number, time }) => `${number} ${time}`, still: true, empty: "None since recording began." })
        const { errors, refusals, refusedRequests } = this.tables
        this.element = h(
            "div", {}, head("Errors", h("span", { class: "soft" }, "since server start")),
            h("div", { class: "two" }, part("Errors sent to clients", card(errors)),
                h("div", {}, part("Rejections by limit", card(refusals)), part("Rejected connections and requests", card(refusedRequests)))),
            part("Latest failed calls", card(this.recent)))
    }

    path = "calls?failed=1&limit=100"

    show({ calls }) {
        const { now, rates } = this.metrics
        for (const [name, table] of Object.entries(this.tables)) {
            const rows = Object.entries(now?.[name] ?? {}).map(([key, count]) => ({ name: key, count, rate: rates.errors.get(`${name} ${key}`) ?? null }))
            table.show(rows.filter(({ count }) => count > 0).sort((one, other) => other.count - one.count))
        }
        this.recent.show(calls)
    }
}

function facts(list, entries) {
    list.replaceChildren(...entries.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))
}

export class Store {
    constructor() {
        this.list = h("dl", { class: "card" })
        this.none = h("p", { class: "note" }, "The server has no store: states are in memory only. Start it with trebuchet serve --data FILE to persist them.")
        this.element = h("div", {}, head("Store"), this.list, this.none)
    }

    path = "store"

    show({ store }) {
        this.list.hidden = !store
        this.none.hidden = Boolean(store)
        if (!store) return
        facts(this.list, [
            ["Kind", store.type], ["Writes", format.count(store.writes)],
            ["Mean write time", format.time(store.writes ? store.seconds / store.writes : null)],
            ["Failed writes", format.count(store.failures)],
            ["Status", store.failing ? h("span", { class: "bad" }, store.failing) : "healthy"],
        ])
    }
}

/** Ranges of slots, collapsed if there are many. */
function slotsOf(rows) {
    const all = h("span", { class: "mono soft" }, rows.join(", "))
    return rows.length <= 8 ? all : h("details", {}, h("summary", {}, `${format.counted(rows.length, "range")}, from ${rows[0].split("–")[0]}`), all)
}

export class Nodes {
    constructor() {
        this.list = h("dl", { class: "card" })
        this.table = new Table(
            [{ title: "Node", cell: ({ name }) => name }, { title: "", cell: ({ own }) => (own ? h("span", { class: "chip" }, "this node") : "") }],
            { key: ({ name }) => name })
        this.none = h("p", { class: "note" }, "The server is not in a cluster. Start it with trebuchet serve --cluster URL --node NAME to join one.")
        this.slots = new Table(
            [
                { title: "Node", kind: "short", cell: ({ node, known }) => [node ?? "none", !known && h("span", { class: "soft" }, " (assigned, not confirmed)")] },
                { title: "Slots", kind: "right", cell: ({ count }) => format.count(count) }, { title: "", cell: ({ slots }) => slotsOf(slots) },
            ],
            { key: ({ node, known }) => `${node} ${known}` })
        this.some = h("div", {}, this.list, part("Live nodes", card(this.table)), part("Slot owners", card(this.slots)))
        this.element = h("div", {}, head("Nodes"), this.some, this.none)
    }

    path = "nodes"

    show(shown) {
        this.some.hidden = !shown.node
        this.none.hidden = Boolean(shown.node)
        if (!shown.node) return
        facts(this.list, [
            ["This node", shown.node], ["Owned slots", format.count(shown.slots)],
            ["Slots acquired and lost", `${format.count(shown.slotsTaken)} and ${format.count(shown.slotsLost)}`],
            ["Coordination store", shown.engineProblem ? h("span", { class: "bad" }, shown.engineProblem) : "available"],
        ])
        this.table.show(shown.nodes.map((name) => ({ name, own: name === shown.node })))
        const owners = new Map()
        for (const { node, known, first, last } of shown.owners) {
            const key = `${node} ${known}`
            if (!owners.has(key)) owners.set(key, { node, known, count: 0, slots: [] })
            owners.get(key).count += last - first + 1
            owners.get(key).slots.push(first === last ? String(first) : `${first}–${last}`)
        }
        this.slots.show([...owners.values()])
    }
}
