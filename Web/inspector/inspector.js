// The inspector: a page that shows the internal state of a server.
import { Actor } from "./inspector-actor.js"
import { History } from "./inspector-charts.js"
import { Log } from "./inspector-log.js"
import { h, setText } from "./inspector-parts.js"
import { Refused, server } from "./inspector-server.js"
import { Actors, Calls, Connections, Errors, Nodes, Overview, Store } from "./inspector-views.js"

const element = (id) => document.getElementById(id)

/** The last overview, and the rates since the one before. */
class Metrics {
    now = null
    rates = { methods: new Map(), errors: new Map(), reactors: [] }
    histories = Object.fromEntries(
        ["calls", "median", "p99", "connections", "turn", "deliveries", "skipped", "memory", "buffered", "processor"].map((name) => [name, new History()]))

    update(now) {
        const old = this.now
        this.now = now
        const { histories: of } = this
        of.connections.add(now.time, now.connections)
        of.turn.add(now.time, Math.max(0, ...now.reactors.map(({ longestTurnSeconds: time }) => time)))
        of.memory.add(now.time, now.process?.residentBytes ?? null)
        of.buffered.add(now.time, now.bufferedBytes)
        const time = now.time - (old?.time ?? now.time)
        if (!old || time <= 0) return
        const rate = (name, value) => of[name].add(now.time, Math.max(0, value(now) - value(old)) / time)
        rate("calls", ({ calls }) => calls.answered)
        rate("deliveries", ({ deliveries: { patch, whole, event } }) => patch + whole + event)
        rate("skipped", ({ versionsSkipped }) => versionsSkipped)
        rate("processor", ({ process }) => process?.processorSeconds ?? 0)
        const buckets = now.calls.buckets.map((count, at) => count - old.calls.buckets[at])
        of.median.add(now.time, quantile(0.5, buckets, now.calls.bounds))
        of.p99.add(now.time, quantile(0.99, buckets, now.calls.bounds))
        this.#rate(now, old, time)
    }

    #rate(now, old, time) {
        const before = new Map(old.methods.map(({ type, method, calls }) => [`${type} ${method}`, calls]))
        const { rates } = this
        rates.methods = new Map(now.methods.map(({ type, method, calls }) => [`${type} ${method}`, (calls - (before.get(`${type} ${method}`) ?? 0)) / time]))
        rates.errors = new Map(
            ["errors", "refusals", "refusedRequests"].flatMap((name) =>
                Object.entries(now[name]).map(([key, count]) => [`${name} ${key}`, (count - (old[name][key] ?? 0)) / time])))
        rates.reactors = now.reactors.map(({ busySeconds, turns }, at) => ({
            busy: (busySeconds - old.reactors[at].busySeconds) / time, rate: (turns - old.reactors[at].turns) / time,
        }))
    }
}

/** Estimates a quantile of call durations, interpolated within its histogram bucket. */
function quantile(share, buckets, bounds) {
    const all = buckets.reduce((sum, count) => sum + count, 0)
    let left = share * all
    for (const [at, count] of buckets.entries()) {
        if (count > 0 && left <= count) {
            const low = at === 0 ? 0 : bounds[at - 1]
            return at < bounds.length ? low + (bounds[at] - low) * (left / count) : low
        }
        left -= count
    }
    return null
}

const views = [
    ["", "Overview", Overview], ["actors", "Actors", Actors], ["connections", "Connections", Connections], ["calls", "Calls", Calls],
    ["log", "Log", Log], ["errors", "Errors", Errors], ["store", "Store", Store], ["nodes", "Nodes", Nodes],
]

/** Decodes a name in the address, which may be malformed. */
function decoded(text) {
    try {
        return decodeURIComponent(text)
    } catch {
        return text
    }
}

class Inspector {
    metrics = new Metrics()
    isPaused = false
    view = null

    constructor() {
        const links = views.map(([name, title]) => h("a", { href: `#/${name}`, "data-view": name }, title))
        element("views").replaceChildren(...links)
        element("pause").addEventListener("click", () => this.pause(!this.isPaused))
        addEventListener("hashchange", () => (server.useLinkedToken() ? this.connect() : this.route()))
        // A hidden page does not observe, so nothing is recorded for it.
        document.addEventListener("visibilitychange", () => this.watch())
    }

    /** Connects to the server with the current token. */
    connect() {
        this.view?.leave?.()
        this.view = null
        this.metrics.now = null
        element("view").replaceChildren()
        this.status("", "connecting")
        this.watch()
    }

    /** Starts or stops observing. */
    watch() {
        if (!server.token || document.hidden || (this.isPaused && this.view && this.isShown)) return server.stop()
        server.watch((name, shown) => this.receive(name, shown), (problem) => this.showProblem(problem))
    }

    pause(isPaused) {
        this.isPaused = isPaused
        setText(element("pause"), isPaused ? "Resume" : "Pause")
        element("pause").classList.toggle("primary", isPaused)
        if (isPaused) this.status("paused", "paused")
        this.watch()
    }

    status(is, text) {
        element("status").dataset.is = is
        setText(element("status"), text)
    }

    route() {
        if (!this.metrics.now) return
        const [path, query] = location.hash.replace(/^#\/?/, "").split("?")
        const [name, ...rest] = path.split("/")
        const found = views.find(([each]) => each === name) ?? views[0]
        const actor = name === "actors" && rest.length > 0 ? decoded(rest.join("/")) : null
        const View = actor === null ? found[2] : Actor
        this.view?.leave?.()
        const writes = Boolean(this.metrics.now.writes)
        const view = (this.view = new View(Object.assign(this.metrics, { writes }), new URLSearchParams(query ?? ""), actor))
        view.reload = () => {
            this.isShown = false
            server.show(view.path)
            this.watch()
        }
        document.title = `${actor ?? found[1]} – Trebuchet inspector`
        for (const link of element("views").children) {
            if (link.dataset.view === found[0]) link.setAttribute("aria-current", "page")
            else link.removeAttribute("aria-current")
        }
        this.showProblem(null)
        element("view").replaceChildren(view.element)
        scrollTo(0, 0)
        this.shown = null
        view.reload()
        this.draw()
    }

    /** Receives a view of the server. */
    receive(name, { path, status, shown }) {
        if (name === "overview") {
            if (status !== 200) return this.showProblem(new Refused(status, shown.error))
            this.metrics.update(shown)
            if (!this.view) this.route()
        } else if (path !== this.view?.path) return
        else if (status !== 200) return this.showProblem(new Refused(status, shown.error))
        else this.shown = shown
        this.showProblem(null)
        this.draw()
    }

    /** Draws in the next frame, once for all updates until then. */
    draw() {
        this.frame ??= requestAnimationFrame(() => {
            this.frame = undefined
            const { view, shown } = this
            if (!view || (view.path !== "" && !shown)) return
            view.show(shown)
            this.isShown = true
            if (this.isPaused) this.watch()
            else if (!this.problem?.isConnected) this.status("live", "live")
        })
    }

    showProblem(error) {
        if (error?.status === 401) return this.requestToken(error.message)
        this.problem ??= h("p", { class: "problem", role: "alert" })
        if (!error) return this.problem.remove()
        setText(this.problem, error.message)
        if (!this.problem.isConnected) element("view").prepend(this.problem)
        this.status("lost", error.status === 0 ? "unreachable" : "error")
    }

    /** Shows a form for the link, if the token is missing or invalid. */
    requestToken(reason) {
        server.forget()
        this.view?.leave?.()
        this.view = null
        this.status("lost", "no token")
        const field = h("input", { type: "password", "aria-label": "Link or token", placeholder: "http://127.0.0.1:…/#token=…", autocomplete: "off" })
        const use = (event) => {
            event.preventDefault()
            if (!field.value.trim()) return
            server.use(field.value)
            location.hash = "#/"
            this.connect()
        }
        element("view").replaceChildren(
            h("form", { class: "link", onsubmit: use }, h("h1", {}, "Connect to an inspector"),
                h("p", { class: "note" }, reason), h("p", { class: "note" }, "Open the link that trebuchet serve --inspector printed, or paste it here."),
                field, h("button", { class: "primary" }, "Connect")))
        field.focus()
    }
}

/** The theme: light, dark or that of the system; stored in this browser. */
function chooseTheme() {
    const themes = ["", "light", "dark"]
    const button = element("theme")
    const show = (theme) => {
        if (theme) document.documentElement.dataset.theme = theme
        else delete document.documentElement.dataset.theme
        setText(button, { "": "Auto", light: "Light", dark: "Dark" }[theme])
    }
    let theme = localStorage.getItem("trebuchet-inspector-theme") ?? ""
    show(themes.includes(theme) ? theme : "")
    button.addEventListener("click", () => {
        theme = themes[(themes.indexOf(theme) + 1) % themes.length]
        localStorage.setItem("trebuchet-inspector-theme", theme)
        show(theme)
    })
}

chooseTheme()
const inspector = new Inspector()
if (server.token) inspector.watch()
else inspector.requestToken("The token is missing. It is part of the link.")
