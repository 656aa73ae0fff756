// One actor: its states as trees, and the calls that made each version.
import { Table, brief, caller, card, format, h, place, setText } from "./inspector-parts.js"
import { States, Tree } from "./inspector-state.js"
import { copiedTest } from "./inspector-copy.js"
import { written } from "./inspector-json.js"
import { callColumns, values } from "./inspector-views.js"
import { CallForm } from "./inspector-write.js"

/** A patch operation as a list item, truncated if it is long. */
function operation({ op, path, from, value }) {
    const what = op === "move" || op === "copy" ? `from ${from}` : op === "remove" ? "" : format.json(value, 2_000)
    return h("li", {}, h("span", { class: "op" }, op), h("span", { class: "path" }, path || "(whole value)"), h("span", { class: "val" }, what))
}

const links = (connections) => connections.map((connection) => [h("a", { href: place.log({ connection }) }, `connection ${connection}`), " "])
const sum = ({ patch, whole, event }) => patch + whole + event

/** The recorded states of the last actors that this window has shown. */
const recentActors = new Map()
const maximumActors = 16

export class Actor {
    /** The stream and the version that are shown; null for the newest. */
    stream = null
    version = null
    states = new Map()

    constructor({ writes }, _, name) {
        this.name = name
        this.facts = h("span", { class: "soft" })
        this.chips = h("span")
        this.problem = h("p", { class: "problem", hidden: true })
        this.streams = h("select", { "aria-label": "State", hidden: true, onchange: () => this.#choose(this.streams.value) })
        this.tree = new Tree()
        this.which = h("span", { class: "grow soft" })
        this.older = h("button", { type: "button", title: "Previous version (←)", onclick: () => this.#step(-1) }, "◀")
        this.newer = h("button", { type: "button", title: "Next version (→)", onclick: () => this.#step(1) }, "▶")
        this.live = h("button", { type: "button", onclick: () => this.#pick(null) }, "Live")
        this.count = h("span", { class: "soft grow" })
        const find = ({ key, target }) => key === "Enter" && this.#find(Number(target.value))
        this.finder = h("input", { type: "number", min: 1, placeholder: "Number", "aria-label": "Version number", onkeydown: find })
        this.missed = h("p", { class: "note line-note", hidden: true })
        this.detail = h("div", { class: "detail" })
        this.table = new Table(
            [
                { title: "Version", kind: "right", cell: ({ version }) => String(version) },
                { title: "Made", kind: "short mono", cell: ({ time }) => format.clock(time) },
                { title: "By", kind: "fit", cell: (row) => this.#causes(row) },
                { title: "Sent to", kind: "right", cell: ({ delivered }) => format.count(sum(delivered)) },
                { title: "Skipped", kind: "right", cell: ({ skipped, behind }) => [skipped > 0 ? h("span", { class: "bad" }, format.count(skipped)) : "0", behind > 0 ? h("span", { class: "chip bad" }, `${format.count(behind)} behind`) : null] },
                { title: "Bytes", kind: "right", cell: ({ bytes }) => format.bytes(bytes) },
            ],
            { key: ({ stream, version }) => `${stream} ${version}`, empty: "None since recording began.", pick: ({ version }) => this.#pick(version) })
        const { time, method, caller, took, outcome } = callColumns
        this.calls = new Table([time, method, caller, took, outcome], { key: ({ number, time }) => `${number} ${time}`, still: true, empty: "None since recording began." })
        this.copied = h("pre", { class: "answer card", hidden: true })
        this.copy = h("button", { type: "button", title: "Generate a Swift test that repeats these calls", onclick: () => this.#copy() }, "Copy as test")
        this.form = writes ? new CallForm(name) : null
        const back = h("a", { href: "#/actors", class: "soft" }, "Actors /")
        this.element = h(
            "div", {}, h("div", { class: "head" }, back, h("h1", { class: "mono" }, name), this.facts, this.chips), this.problem,
            h("div", { class: "actor" },
                h("div", { class: "card panel" },
                    h("header", {}, h("h2", {}, "State"), this.streams, this.which, h("span", { class: "step" }, this.older, " ", this.newer, " ", this.live)),
                    this.tree.element, this.form?.element),
                h("div", { class: "card panel" },
                    h("header", {}, h("h2", {}, "Versions"), this.count, this.finder), this.missed, h("div", { class: "line" }, this.table.element), this.detail)),
            h("section", {}, h("div", { class: "tools" }, h("h2", {}, "Calls"), this.copy, h("a", { href: place.log({ actor: name }), class: "chip" }, "Log")), this.copied, card(this.calls)))
        this.keys = (event) => {
            if (event.target.closest?.("input, textarea, select") || event.altKey || event.metaKey || event.ctrlKey) return
            if (event.key === "ArrowLeft" || event.key === "ArrowRight") this.#step(event.key === "ArrowLeft" ? -1 : 1)
        }
        document.addEventListener("keydown", this.keys)
    }

    leave() {
        document.removeEventListener("keydown", this.keys)
    }

    #causes({ calls, moreCalls }) {
        const [first] = calls
        if (!first) return h("span", { class: "soft" }, "the server")
        const more = calls.length - 1 + moreCalls
        return [first.method ?? `call ${first.call}`, values(first), first.principal ? h("span", { class: "soft" }, " · ", brief(first.principal)) : null, more > 0 ? h("span", { class: "chip" }, `+ ${more}`) : null]
    }

    #choose(stream) {
        this.stream = stream
        this.version = null
        this.#show()
    }

    #pick(version) {
        this.version = version
        this.missed.hidden = true
        this.#show()
        if (version !== null) this.table.reveal(`${this.stream} ${version}`)
    }

    /** Finds the version with this number or with this change: changes that were sent together have the number of the last one. */
    #find(number) {
        if (!number || !this.versions?.length) return
        const found = this.versions.findLast(({ version }) => version >= number)
        const oldest = this.versions.at(-1)
        const isRecorded = found && (found !== oldest || number === oldest.version || number > (oldest.base ?? oldest.previous ?? Infinity))
        if (isRecorded) return this.#pick(found.version)
        setText(this.missed, `Only versions ${oldest.version} to ${this.versions[0].version} are recorded.`)
        this.missed.hidden = false
    }

    #step(by) {
        const { versions } = this
        if (!versions?.length) return
        const at = this.version === null ? 0 : versions.findIndex(({ version }) => version === this.version)
        const next = at - by
        if (next < 0) return this.#pick(null)
        if (next < versions.length) this.#pick(versions[next].version)
    }

    get path() {
        return `actors/${encodeURIComponent(this.name)}?versions=200&earlier=1`
    }

    show(shown) {
        this.shown = shown
        this.states = this.#statesSince(shown.recorded?.since)
        States.update(shown, this.states)
        this.form?.methods(shown.methods ?? [])
        this.#show()
        this.calls.show((shown.calls ?? []).slice(0, 50))
    }

    /** The recorded states, or new ones if recording has restarted: the name may refer to another instance then. */
    #statesSince(since) {
        const known = recentActors.get(this.name)
        const states = known && known.since === since ? known.states : new Map()
        recentActors.delete(this.name)
        recentActors.set(this.name, { since, states })
        if (recentActors.size > maximumActors) recentActors.delete(recentActors.keys().next().value)
        return states
    }

    async #copy() {
        const text = copiedTest(this.shown, this.states)
        setText(this.copied, text)
        this.copied.hidden = false
        // Also shown, since the clipboard may be inaccessible.
        await navigator.clipboard?.writeText(text).then(() => setText(this.copy, "Copied"), () => {})
    }

    #versionsOf(name) {
        return (this.shown.recorded?.versions ?? []).filter(({ stream }) => stream === name)
    }

    #show() {
        const { type, reactor, onDemand, clustered, persisted, states } = this.shown
        setText(this.facts, `${type} · ${reactor ?? "any thread"}`)
        const chips = [onDemand && "on demand", clustered && "clustered", persisted && "persisted"].filter(Boolean)
        setText(this.chips, chips.join(" · "))
        this.chips.className = chips.length ? "chip" : ""
        this.#showStreams(states)
        const state = states.find(({ stream }) => stream === this.stream)
        this.versions = this.#versionsOf(this.stream)
        const problem = this.shown.hidden ? "The actor is exposed with inspectable: false; its contents are hidden." : state?.problem
        this.problem.hidden = !problem
        setText(this.problem, problem ?? "")
        const isLive = this.version === null
        const version = isLive ? state?.version : this.version
        const value = isLive && state?.value !== null && state?.value !== undefined ? state.value : this.states.get(this.stream)?.at(version)
        // A value above the size limit is not sent.
        if (state && !state.problem) this.tree.show(value, isLive && this.treeOf === this.stream)
        this.treeOf = isLive ? this.stream : null
        setText(this.which, state ? `version ${version ?? "–"} · ${format.bytes(state.bytes)} · ${format.counted(state.subscribers, "subscriber")}` : "no state")
        this.live.setAttribute("aria-pressed", String(isLive))
        const at = this.versions.findIndex((each) => each.version === version)
        this.older.disabled = this.versions.length === 0 || at === this.versions.length - 1
        this.newer.disabled = isLive
        this.table.show(this.versions)
        this.table.select(`${this.stream} ${version}`)
        const since = this.shown.recorded?.since
        const { count, limit } = this.shown.recorded ?? {}
        const number = format.count(this.versions.length)
        setText(this.count, !since ? "" : count >= limit ? `last ${number} versions (limit ${limit} per actor)` : `${number} since ${format.clock(since).slice(0, 8)}`)
        this.#showDetail(this.versions[at])
    }

    #showStreams(states) {
        this.stream ??= states[0]?.stream ?? null
        this.streams.hidden = states.length < 2
        if (this.streams.options.length === states.length) return
        this.streams.replaceChildren(...states.map(({ stream }) => h("option", { value: stream }, stream)))
        this.streams.value = this.stream
    }

    #showDetail(version) {
        // An unchanged version is not drawn again, so that a selection is preserved.
        const text = written(version ?? null)
        if (text === this.detailed) return
        this.detailed = text
        if (!version) {
            const hint = "New versions are recorded from now on, with the calls that made them. The previous state is known too."
            return this.detail.replaceChildren(h("p", { class: "note" }, this.versions.length ? "Select a version." : hint))
        }
        const { delivered, skipped, skippedBy, behind, behindBy, calls, moreCalls, partial } = version
        const figure = (number, text) => h("div", {}, h("b", {}, format.count(number)), h("span", {}, text))
        const columns = [
            { title: "Call", kind: "right", cell: ({ call }) => String(call) }, { ...callColumns.method, kind: "" }, callColumns.caller,
            { title: "Begun", kind: "short mono", cell: ({ time }) => format.clock(time) }, callColumns.took,
            { title: "To version", kind: "right", cell: ({ time }) => (time ? format.time((version.time - time) / 1000) : "–") },
            ...(calls.some(({ trace }) => trace) ? [{ title: "Trace", kind: "short mono", cell: ({ trace }) => (trace ? brief(trace, 10) : "–") }] : []),
        ]
        const table = new Table(columns, { key: ({ call }) => call, empty: "No client call: the server changed the state." })
        table.show(calls)
        this.detail.replaceChildren(
            h("h2", {}, `Version ${version.version}`),
            h("div", { class: "reach" }, figure(delivered.patch, "sent as a patch"), figure(delivered.whole, "sent as a whole value"), figure(skipped, "skipped"),
                behind > 0 ? figure(behind, "not received yet") : null),
            skippedBy?.length ? h("p", { class: "skippers" }, "Not sent to ", links(skippedBy), "(not writable at that time; a later version followed, or none).") : "",
            behindBy?.length ? h("p", { class: "skippers" }, "Pending for ", links(behindBy), "(not writable).") : "",
            h("h2", {}, calls.length > 1 ? `Made by ${format.counted(calls.length + moreCalls, "call")}` : "Made by"),
            h("div", { class: "scroll" }, table.element), moreCalls > 0 ? h("p", { class: "soft" }, `and ${format.count(moreCalls)} more`) : "",
            partial ? h("p", { class: "bad" }, "Recording was sampled: further calls may have contributed, and further subscribers may have received it.") : "",
            h("h2", {}, version.base !== undefined ? `Patch from version ${version.base}` : "Whole value"),
            h("ul", { class: "ops" }, this.#changes(version)))
    }

    #changes({ patch, value, base, bytes }) {
        if (base === undefined && value !== undefined && value !== null) return h("li", {}, h("span", { class: "op" }, "value"), h("span"), h("span", { class: "val" }, format.json(value, 2_000)))
        if (!patch) return h("li", {}, h("span", { class: "soft" }, `${format.bytes(bytes)}, not recorded`))
        const most = 200
        const more = patch.length > most ? h("li", {}, h("span", { class: "soft" }, `${patch.length - most} more`)) : null
        return [patch.slice(0, most).map(operation), more]
    }
}
