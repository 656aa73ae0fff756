// Charts of the last two minutes, drawn by hand.
import { h, setText } from "./inspector-parts.js"

const seconds = 120
/** The minimum time that a chart shows, so that a new one is not a line at its edge. */
const least = 30
const space = "http://www.w3.org/2000/svg"

function shape(name, attributes) {
    const element = document.createElementNS(space, name)
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
    return element
}

/** Values of the last two minutes with their times. */
export class History {
    points = []

    add(time, value) {
        this.points.push({ time, value })
        while (this.points[0].time < time - seconds) this.points.shift()
    }

    get newest() {
        return this.points.at(-1)?.value ?? null
    }
}

/** A metric with its history, and an optional second metric as a dashed line. */
export class Chart {
    constructor(title, history, write, { second, unit, floor = 0 } = {}) {
        Object.assign(this, { history, second, write, floor })
        this.value = h("span")
        this.unit = h("small", {}, unit ?? "")
        this.top = h("span", { class: "top" })
        this.area = shape("path", { class: "area" })
        this.line = shape("path", { class: "line" })
        this.other = shape("path", { class: "second" })
        this.cross = shape("path", { class: "cross" })
        const drawing = shape("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", "aria-hidden": "true" })
        drawing.append(this.area, this.line, this.other, shape("path", { class: "base", d: "M0 40H100" }), this.cross)
        drawing.addEventListener("pointermove", (event) => {
            const box = drawing.getBoundingClientRect()
            this.at = (event.clientX - box.left) / box.width
            this.draw()
        })
        drawing.addEventListener("pointerleave", () => {
            this.at = undefined
            this.draw()
        })
        this.element = h(
            "div", { class: "card chart" }, h("h2", {}, title), this.top, h("div", { class: "value" }, this.value, this.unit), drawing)
    }

    draw() {
        const { points } = this.history
        const end = points.at(-1)?.time ?? 0
        const most = Math.max(this.floor, ...points.map(({ value }) => value ?? 0), ...(this.second?.points ?? []).map(({ value }) => value ?? 0))
        const span = Math.min(seconds, Math.max(least, end - (points[0]?.time ?? end)))
        const x = (time) => 100 * (1 - (end - time) / span)
        const y = (value) => 40 - (most > 0 ? (37 * value) / most : 0)
        this.line.setAttribute("d", trace(points, x, y))
        this.other.setAttribute("d", trace(this.second?.points ?? [], x, y))
        const known = points.filter(({ value }) => value !== null)
        this.area.setAttribute(
            "d", known.length > 1 ? `${trace(known, x, y)}L${x(known.at(-1).time).toFixed(2)} 40L${x(known[0].time).toFixed(2)} 40Z` : "")
        setText(this.top, most > 0 ? `max ${this.write(most)}` : "")
        let shown = points.at(-1)
        let second = this.second?.points.at(-1)
        this.cross.setAttribute("d", "")
        if (this.at !== undefined && points.length > 0) {
            const near = ({ time }) => Math.abs(x(time) - 100 * this.at)
            shown = points.reduce((best, point) => (near(point) < near(best) ? point : best))
            second = this.second?.points.find(({ time }) => time === shown.time)
            this.cross.setAttribute("d", `M${x(shown.time).toFixed(2)} 0V40`)
        }
        setText(this.value, shown ? this.write(shown.value) : "–")
        if (this.second) setText(this.unit, second ? `${this.unitOf} ${this.write(second.value)}` : "")
    }

    /** Sets the name of the second line. */
    named(name) {
        this.unitOf = name
        return this
    }
}

/** A path through the points, with gaps at points without a value. */
function trace(points, x, y) {
    let path = ""
    let isOn = false
    for (const { time, value } of points) {
        if (value !== null) path += `${isOn ? "L" : "M"}${x(time).toFixed(2)} ${y(value).toFixed(2)}`
        isOn = value !== null
    }
    return path
}
