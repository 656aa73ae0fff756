// The log of a connection, of an actor, or of the server.
import { Table, format, h, place, setText } from "./inspector-parts.js"

/** The fields of a line, except time and message. */
function fields({ fields }) {
    return Object.entries(fields).filter(([name]) => name !== "method").map(([name, value]) => {
        const text = name === "seconds" ? format.time(value) : String(value)
        const link = name === "actor" ? place.actor(text) : name === "connection" ? place.log({ connection: text }) : null
        return [h("span", { class: "soft" }, `${name} `), link ? h("a", { href: link, class: "mono" }, text) : text, "  "]
    })
}

export class Log {
    lines = []
    last = 0

    constructor(_, parameters) {
        this.connection = Number(parameters.get("connection")) || null
        this.actor = parameters.get("actor")
        this.search = h("input", { type: "search", placeholder: "Filter lines", "aria-label": "Filter lines", oninput: () => this.#show() })
        this.count = h("span", { class: "soft" })
        const level = ({ level }) => h("span", { class: ["error", "warning", "notice"].includes(level) ? "bad" : "soft" }, level)
        this.table = new Table(
            [
                { title: "Time", kind: "short mono", cell: ({ time }) => format.clock(time) }, { title: "Level", kind: "short", cell: level },
                { title: "Message", kind: "name", cell: ({ message, fields }) => [message, fields.method ? h("span", { class: "mono soft" }, ` ${fields.method}`) : null] },
                { title: "", cell: fields },
            ],
            { key: ({ number, time }) => `${number} ${time}`, still: true, empty: "No lines since recording began." })
        const chosen = this.actor ? `actor ${this.actor}` : this.connection ? `connection ${this.connection}` : null
        this.element = h(
            "div", {}, h("div", { class: "head" }, h("h1", {}, "Log"), this.count),
            h("div", { class: "tools" }, this.search, chosen && h("a", { href: "#/log", class: "chip" }, `${chosen} ✕`)),
            h("div", { class: "card scroll" }, this.table.element),
            h("p", { class: "note" }, "Lines of the server's log at level debug, since recording began."))
    }

    get path() {
        const filter = this.actor ? `actor=${encodeURIComponent(this.actor)}&` : this.connection ? `connection=${this.connection}&` : ""
        return `log?${filter}limit=200`
    }

    show({ last, lines, pauses }) {
        // Recording restarts after a time without observers.
        if (last < this.last) this.lines = []
        Object.assign(this, { last, pauses })
        this.lines = [...lines.filter(({ number }) => number > (this.lines[0]?.number ?? 0)), ...this.lines].slice(0, 2_000)
        this.#show()
    }

    #show() {
        const searched = this.search.value.toLowerCase()
        const found = this.lines.filter(({ level, message, fields }) => `${level} ${message} ${Object.values(fields).join(" ")}`.toLowerCase().includes(searched))
        this.table.show(found.slice(0, 100))
        const sampling = this.pauses > 0 ? `; recording was sampled ${format.counted(this.pauses, "time")}` : ""
        setText(this.count, `${format.count(found.length)} of the last ${format.count(this.lines.length)}${sampling}`)
    }
}
