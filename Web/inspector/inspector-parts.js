// Building blocks of the views. Data of the server is inserted as text, never as markup.
import { written } from "./inspector-json.js"

/** Creates an element with attributes and children: texts, elements, or lists of them. Null and false are omitted. */
export function h(name, attributes = {}, ...children) {
    const element = document.createElement(name)
    for (const [key, value] of Object.entries(attributes)) {
        if (value === null || value === undefined || value === false) continue
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value)
        else if (key === "value" || key === "checked" || key === "disabled" || key === "hidden") element[key] = value
        else element.setAttribute(key, value === true ? "" : value)
    }
    element.append(...flat(children))
    return element
}

function flat(children) {
    return children.flat(9).filter((child) => child !== null && child !== undefined && child !== false)
}

/** Sets a text if it differs, so that a selection is preserved. */
export function setText(element, text) {
    if (element.textContent !== text) element.textContent = text
}

const count = new Intl.NumberFormat("en", { maximumFractionDigits: 0 })

export const format = {
    count: (number) => (number === null || number === undefined ? "–" : count.format(number)),
    /** A number with its noun, which is singular for 1. */
    counted: (number, singular, plural = singular + "s") => `${format.count(number)} ${number === 1 ? singular : plural}`,
    rate(number) {
        if (number === null || number === undefined) return "–"
        return number >= 100 || number === 0 ? count.format(number) : number.toFixed(number >= 10 ? 1 : 2)
    },
    bytes(bytes) {
        if (bytes === null || bytes === undefined) return "–"
        let place = 0
        for (; bytes >= 1024 && place < 4; place++) bytes /= 1024
        return `${place === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB"][place]}`
    },
    time(seconds) {
        if (seconds === null || seconds === undefined) return "–"
        if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`
        if (seconds < 1) return `${(seconds * 1e3).toPrecision(seconds < 0.1 ? 2 : 3)} ms`
        return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`
    },
    age(seconds) {
        if (seconds < 90) return `${Math.round(seconds)} s`
        if (seconds < 5400) return `${Math.round(seconds / 60)} min`
        return seconds < 172_800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86_400)} d`
    },
    /** The time of day of milliseconds since 1970. */
    clock(milliseconds) {
        if (!milliseconds) return "–"
        const date = new Date(milliseconds)
        const two = (number) => String(number).padStart(2, "0")
        const rest = String(date.getMilliseconds()).padStart(3, "0")
        return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${rest}`
    },
    /** JSON in one line, truncated if it is long. */
    json(value, most = 300) {
        const text = value === undefined ? "" : written(value)
        return text.length > most ? `${text.slice(0, most)}…` : text
    },
}

/**
 * A table that reuses its rows: only changed rows are drawn, and a limited number of new rows per frame.
 *
 * With `still`, the contents of a row never change. Columns have `title`, `cell(row)` (a text, an element, or a list), and an optional `kind`:
 * `right` for numbers, `short` for text without line breaks.
 */
export class Table {
    /** The maximum number of new rows per frame. */
    static step = 40
    #rows = new Map()
    #selected
    #target

    constructor(columns, { key, empty = "No entries.", pick, still = false } = {}) {
        Object.assign(this, { columns, key, pick, still })
        this.body = h("tbody")
        const heads = columns.map(({ title, kind }) => h("th", { scope: "col", class: kind }, title))
        this.element = h("table", {}, h("thead", {}, h("tr", {}, heads)), this.body)
        this.nothing = h("tr", {}, h("td", { class: "empty", colspan: columns.length }, empty))
    }

    show(rows) {
        const retained = new Map()
        let place = this.body.firstChild
        let made = 0
        for (const row of rows) {
            const key = this.key(row)
            if (retained.has(key)) continue
            let shown = this.#rows.get(key)
            if (!shown && made === Table.step) continue
            if (!shown) {
                shown = this.#make()
                made++
            }
            retained.set(key, shown)
            this.#fill(shown, row)
            if (shown.element === place) place = place.nextSibling
            else this.body.insertBefore(shown.element, place)
        }
        for (const [key, { element }] of this.#rows) if (!retained.has(key)) element.remove()
        this.#rows = retained
        this.select(this.#selected)
        if (retained.size === 0) this.body.append(this.nothing)
        else this.nothing.remove()
        // Further rows follow in the next frame.
        cancelAnimationFrame(this.frame)
        if (made === Table.step) this.frame = requestAnimationFrame(() => this.show(rows))
    }

    #fill(shown, row) {
        const { row: old, text: before } = shown
        if (old === row) return
        const text = this.still ? "" : written(row)
        Object.assign(shown, { row, text })
        if (old && text === before) return
        this.columns.forEach((column, at) => fill(shown.cells[at], column.cell(row)))
    }

    /** Scrolls to a row, now or when it exists. */
    reveal(key) {
        this.#target = key
        this.select(this.#selected)
    }

    select(key) {
        this.#selected = key
        const target = this.#rows.get(this.#target)
        if (target) {
            this.#target = undefined
            target.element.scrollIntoView({ block: "nearest" })
        }
        for (const [each, { element }] of this.#rows) {
            if (each === key) element.setAttribute("aria-selected", "true")
            else element.removeAttribute("aria-selected")
        }
    }

    #make() {
        const cells = this.columns.map(({ kind }) => h("td", { class: kind }))
        const shown = { cells, element: h("tr", {}, cells) }
        if (this.pick) {
            shown.element.tabIndex = 0
            shown.element.addEventListener("click", () => this.pick(shown.row))
            shown.element.addEventListener("keydown", ({ key }) => key === "Enter" && this.pick(shown.row))
        }
        return shown
    }
}

function fill(cell, content) {
    if (typeof content === "string" || content === null || content === undefined) return setText(cell, content ?? "")
    const parts = flat([content]).map((part) => (typeof part === "string" ? document.createTextNode(part) : part))
    const same = parts.length === cell.childNodes.length && parts.every((part, at) => part.isEqualNode(cell.childNodes[at]))
    if (!same) cell.replaceChildren(...parts)
}

/** A table in a separate card. */
export function card(table) {
    return h("div", { class: "card scroll" }, table.element)
}

/** Buttons for the previous and the next page. */
export class Pager {
    page = 0

    constructor(onChange) {
        this.text = h("span")
        this.back = h("button", { type: "button", onclick: () => onChange((this.page -= 1)) }, "Previous")
        this.on = h("button", { type: "button", onclick: () => onChange((this.page += 1)) }, "Next")
        this.element = h("div", { class: "pages" }, this.text, this.back, this.on)
    }

    show({ page, pages, found, size }, what) {
        this.element.hidden = pages <= 1 && page === 0
        const first = found === 0 ? 0 : page * size + 1
        setText(this.text, `${format.count(first)}–${format.count(Math.min(found, (page + 1) * size))} of ${format.count(found)} ${what}`)
        this.back.disabled = page === 0
        this.on.disabled = page + 1 >= pages
    }
}

export const place = {
    actor: (name) => `#/actors/${encodeURIComponent(name)}`,
    connection: (number) => `#/calls?connection=${number}`,
    /** - of: `actor` or `connection`. */
    log: (of) => `#/log?${new URLSearchParams(of).toString().replaceAll("+", "%20")}`,
}

/** A text, truncated if it is long; the tooltip shows all of it. */
export function brief(text, most = 14) {
    return text.length > most ? h("span", { title: text }, `${text.slice(0, most - 1)}…`) : text
}

/** The caller: a link to the other calls of its connection. */
export function caller({ connection, principal, address }) {
    if (!connection) return h("span", { class: "soft" }, "–")
    return h("a", { href: place.connection(connection), title: address ?? "" }, brief(principal ?? "anonymous"), h("span", { class: "soft" }, ` · connection ${connection}`))
}

/** The share of recorded calls, of the answered and of the rejected ones. Rejected calls are not counted, so the errors sent to clients are the total. */
export function sampled(first, now) {
    const [recorded, answered, refused, errorsSent] = ["recorded", "answered", "refused", "errorsSent"].map((name) => now[name] - first[name])
    const ended = recorded - refused
    // The two counts were read at nearly the same time.
    const parts = [`${format.count(ended)} of ${format.counted(Math.max(ended, answered), "answered call")}`]
    if (refused > 0) parts.push(`${format.counted(refused, "rejected call")} (${format.counted(Math.max(refused, errorsSent), "error")} sent to clients)`)
    return `; sampled: ${parts.join(", and ")}`
}
