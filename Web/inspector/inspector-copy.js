// A Swift test that makes the calls of an actor again, and compares what it shows then.

const uuid = /[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}/gi

/** A text as a literal of Swift. */
function literal(text) {
    const escaped = text.replace(/[\\"]/g, "\\$&").replace(/[\u0000-\u001f\u007f\u2028\u2029]/g, (one) => `\\u{${one.codePointAt(0).toString(16)}}`)
    return `"${escaped}"`
}

/** The same, in which nothing is escaped: for JSON, which has neither line breaks nor other control characters. */
function raw(text) {
    let signs = "#"
    while (text.includes(`"${signs}`) || text.includes(`\\${signs}`)) signs += "#"
    return `${signs}"${text}"${signs}`
}

/** A value for a parameter whose type is not known here: numbers fit as they are, and all else is read as the type that is wanted. */
function value(json) {
    if (json === null) return "nil"
    return typeof json === "number" || typeof json === "boolean" ? String(json) : `recorded(${raw(JSON.stringify(json))})`
}

const identities = (json) => (JSON.stringify(json ?? null).match(uuid) ?? [])
const property = (stream) => stream.replace(/^observe/, "").replace(/^./, (first) => first.toLowerCase())

/**
 * What is known of the states of an actor, as `swiftTest` wants it.
 *
 * - shown: what the inspector shows of the actor.
 * - known: the values that the states had, by their streams.
 */
export function recordedStates({ states, recorded }, known) {
    return new Map(states.map(({ stream, value }) => {
        const oldest = recorded?.versions.findLast((version) => version.stream === stream)
        const values = known.get(stream)
        return [stream, { initial: oldest ? values?.before(oldest) : value ?? undefined, at: (version) => values?.at(version) }]
    }))
}

/** The versions, the oldest first, up to the first that others than the calls have made. */
function madeByCalls(versions) {
    const end = versions.findIndex(({ calls, moreCalls, partial }) => calls.length === 0 || moreCalls > 0 || partial)
    return end < 0 ? [versions, Infinity] : [versions.slice(0, end), versions[end].time]
}

/**
 * The test. The actor begins with the states that it had before the first of the calls; the calls are expected to be answered, or refused, as they
 * were, and the states to be shown as they were then, as long as the calls alone have made them.
 *
 * - calls: the oldest first, with their arguments.
 * - versions: what they made, the newest first.
 * - states: for each stream `initial`, the value before the first of the versions, and `at(version)`; undefined what is not known.
 */
export function swiftTest({ name, type, calls, versions, states }) {
    const [module, ...parts] = type.split(".")
    const [known, end] = madeByCalls(versions.toReversed())
    // What was called before the first version that is known is in the states that it begins with.
    const first = Math.min(...versions.flatMap(({ calls }) => calls.map(({ call }) => call)))
    const made = calls.filter(({ call }) => !call || !Number.isFinite(first) || call >= first)
    const writer = new Writer(known, states)
    for (const call of made) writer.plan(call)
    const ended = ({ time, seconds }) => (time ?? 0) + 1_000 * (seconds ?? 0)
    const at = made.findIndex((call) => ended(call) >= end)
    const compared = at < 0 ? made : made.slice(0, at)
    const lines = compared.flatMap((call) => writer.statements(call))
    lines.push(...writer.comparison())
    if (at >= 0) lines.push("// From here on it has changed by itself, too.", ...made.slice(at).flatMap((call) => writer.statements(call)))
    const begins = [...states].filter(([, { initial }]) => initial !== undefined)
    const actor = parts.join(".")
    const identifier = name.replace(/[^A-Za-z0-9]+/g, "_").replace(/^(?=\d|$)/, "actor_")
    return [
        "import Testing", "import Trebuchet", "import TrebuchetTesting", "", `@testable import ${module}`, "",
        `@Test(${literal(`the calls that ${name} had`)})`, `func ${identifier}Calls() async throws {`, "    let recorded = RecordedState()",
        "    try await withTestServer { server in", `        let actor = ${actor}(actorSystem: server.actorSystem)`,
        ...(begins.length > 0 ? ["        _ = try await actor.whenLocal { actor in"] : []),
        ...begins.map(([stream, { initial }]) => `            actor.${property(stream)} = try recorded(${raw(JSON.stringify(initial))})`),
        ...(begins.length > 0 ? ["        }"] : []), `        await server.expose(actor, as: ${literal(name)})`,
        "    } body: { client, _ in", `        let actor = try client.resolve(${actor}.self, id: ${literal(name)})`,
        ...lines.map((line) => `        ${line}`), "    }", "}", "",
    ].join("\n")
}

class Writer {
    /** Calls behind which a state is looked at, for the identities that they have made. */
    looks = new Map()
    /** Whether a call is left out that has changed something. */
    isWhole = true

    constructor(versions, states) {
        Object.assign(this, { versions, states })
        this.changed = new Set(versions.flatMap(({ calls }) => calls.map(({ call }) => call)))
        this.there = new Set([...states.values()].flatMap(({ initial }) => identities(initial)))
        this.lacking = new Set()
    }

    /** Finds out where the identities come from that a call names: from its caller, or from what a call before it has made. */
    plan({ call, arguments: list }) {
        for (const id of identities(list)) {
            if (this.there.has(id)) continue
            const maker = this.versions.find(({ stream, version }) => identities(this.states.get(stream)?.at(version)).includes(id))
            const isMade = maker?.calls.length > 0 && maker.calls.every((each) => each.call < call && !identities(each.arguments).includes(id))
            // From now on it is one that the caller has.
            if (!isMade) this.there.add(id)
            else if (maker.calls.length > 1) this.lacking.add(id)
            else this.looks.set(maker.calls[0].call, maker)
        }
    }

    statements(call) {
        const { method, arguments: list, redacted, error, refused } = call
        const leave = (why) => {
            if (this.changed.has(call.call)) this.isWhole = false
            return [`// ${method?.replace(/[\r\n]/g, " ")} is left out: ${why}.`]
        }
        const found = /^([\p{L}_][\p{L}\p{N}_]*)\((.*)\)$/u.exec(method ?? "")
        if (refused || !found) return leave("there is no such method, or it was refused before it began")
        if (!list) return leave(redacted ? "its arguments are shown to nobody" : "its arguments are not known")
        // Nor would they fit in Swift.
        if (error === "invalidArguments") return leave("its arguments did not fit")
        if (identities(list).some((id) => this.lacking.has(id))) return leave("it names what is not known here")
        const labels = found[2].split(":").slice(0, -1)
        const given = labels.map((label, at) => (label === "_" ? value(list[at]) : `${label}: ${value(list[at])}`)).join(", ")
        const text = `try await actor.${found[1]}(${given})`
        if (error) return [`await #expect(throws: (any Error).self) { _ = ${text} }`]
        const look = this.looks.get(call.call)
        return [`_ = ${text}`, ...(look ? [this.#compare(look.stream, this.states.get(look.stream).at(look.version))] : [])]
    }

    #compare(stream, state) {
        return `#expect(await recorded.isShown(${raw(JSON.stringify(state))}, in: actor.${stream}()))`
    }

    /** What is shown when the calls were made. */
    comparison() {
        if (!this.isWhole) return ["// States are not compared: a call that has changed them is left out."]
        return [...this.states].flatMap(([stream, { initial, at }]) => {
            const last = this.versions.findLast((version) => version.stream === stream)
            const state = last ? at(last.version) : initial
            return initial === undefined || state === undefined ? [] : [this.#compare(stream, state)]
        })
    }
}
