// Generates a Swift test that repeats the calls of an actor and compares its states.
import { isExact, written } from "./inspector-json.js"

const uuid = /[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}/gi
/** Characters that a line must not contain, or that are invisible. */
const invisible = /[\p{Cc}\p{Cf}\u2028\u2029]/gu
const longestReason = 300

/** A text as a Swift literal. */
function literal(text) {
    const escaped = text.replace(/[\\"]/g, "\\$&").replace(invisible, (one) => `\\u{${one.codePointAt(0).toString(16)}}`)
    return `"${escaped}"`
}

/** JSON as a raw Swift literal, so that only the escapes of JSON remain. */
function raw(json) {
    const units = (text) => Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`)
    const text = json.replace(invisible, (one) => units(one).join(""))
    let signs = "#"
    while (text.includes(`"${signs}`) || text.includes(`\\${signs}`)) signs += "#"
    return `${signs}"${text}"${signs}`
}

/** Text from clients, as a comment of one line. */
function commentText(text) {
    const line = text.replace(invisible, " ")
    return line.length > longestReason ? `${line.slice(0, longestReason)}…` : line
}

/** A value for a parameter of unknown type: whole numbers are literals, any other value is decoded as the type of the parameter. */
function value(json) {
    if (json === null) return "nil"
    return typeof json === "boolean" || Number.isSafeInteger(json) ? String(json) : `recorded(${raw(written(json))})`
}

const identities = (json) => (isExact(json) ? [] : written(json ?? null).match(uuid) ?? [])
const property = (stream) => stream.replace(/^observe/, "").replace(/^./, (first) => first.toLowerCase())
const ended = ({ time, seconds }) => time + 1_000 * (seconds ?? 0)
/** Errors that depend on the network or the caller, not on the actor alone. */
const externalErrors = ["cancelled", "timeout", "unavailable", "rateLimited", "unknownOutcome"]

/**
 * Returns the test of an actor.
 *
 * - shown: the view of the actor.
 * - known: the known versions of its states, by stream.
 */
export function copiedTest(shown, known) {
    const { name, type, calls, recorded } = shown
    return swiftTest({
        name, type, calls: calls.toReversed(), versions: recorded?.versions ?? [], completeSince: recorded?.completeSince ?? null, states: recordedStates(shown, known),
    })
}

/** The known states of an actor, in the form that `swiftTest` expects. */
export function recordedStates({ states, recorded }, known) {
    const versions = recorded?.versions ?? []
    // Unrecorded calls may have changed the other states as well.
    const isPartial = versions.some(({ partial }) => partial)
    return new Map(states.map(({ stream, value }) => {
        const oldest = versions.findLast((version) => version.stream === stream)
        const values = known.get(stream)
        const unchanged = isPartial ? undefined : value ?? undefined
        return [stream, { initial: oldest ? values?.before(oldest) : unchanged, at: (version) => values?.at(version) }]
    }))
}

/** The versions, from the oldest to the first that was not made by calls alone. */
function madeByCalls(versions) {
    const end = versions.findIndex(({ calls, moreCalls, partial }) => calls.length === 0 || moreCalls > 0 || partial)
    return end < 0 ? [versions, Infinity] : [versions.slice(0, end), versions[end].time]
}

/**
 * Returns the calls after the initial states of the actor, and whether these states are known. Changes of earlier calls are in the initial states.
 *
 * - completeSince: the time from which all versions are known.
 */
function callsAfterStart(calls, versions, completeSince) {
    const makers = new Set(versions.flatMap(({ calls }) => calls.map(({ call }) => call)))
    const first = Math.min(...makers)
    const oldest = versions.at(-1)?.time
    // Each change of such a call is in a recorded version.
    const isObserved = ({ time }) => (time ?? 0) >= (completeSince ?? Infinity)
    const isLater = (call) => makers.size > 0 && (!call.call || call.call > first) && (call.time === undefined || call.time === null || ended(call) >= oldest)
    const made = calls.filter((call) => makers.has(call.call) || isObserved(call) || isLater(call))
    return made.length > 0 || calls.length === 0 ? { made, isKnown: true } : { made: calls, isKnown: false }
}

/**
 * Returns the test. The actor begins with its states before the first call. The test expects each call to return or throw as recorded, and the
 * recorded states as long as only the calls have changed them.
 *
 * - calls: from the oldest to the newest, with their arguments.
 * - versions: from the newest to the oldest.
 * - states: for each stream `initial`, the value before the first version, and `at(version)`; undefined if unknown.
 * - completeSince: the time from which all versions are known, on the clock of the calls; null if unknown.
 */
export function swiftTest({ name, type, calls, versions, states, completeSince = 0 }) {
    const [module, ...parts] = type.split(".")
    const { made, isKnown } = callsAfterStart(calls, versions, completeSince)
    const known = new Map([...states].map(([stream, state]) => [stream, isKnown ? state : { at: () => undefined }]))
    const body = bodyOf(made, versions, known)
    const begins = [...known].filter(([, { initial }]) => initial !== undefined)
    const lacking = [...known].filter(([, { initial }]) => initial === undefined).map(([stream]) => property(stream))
    const notes = []
    const before = calls.length - made.length
    if (before > 0) notes.push(`// ${before === 1 ? "1 earlier call is" : `${before} earlier calls are`} omitted: the changes are in the initial states.`)
    if (lacking.length > 0) {
        const why = isKnown ? "is unknown" : "was not recorded"
        notes.push(`// The state of ${lacking.join(" and ")} before these calls ${why}: it begins as in a new actor, and is not compared.`)
    }
    // All lines except comments are calls, which the test checks.
    if (!body.some((line) => !line.startsWith("//"))) body.push(`Issue.record("no checks: none of the calls can be repeated")`)
    const actor = parts.join(".")
    // An unused constant is a warning.
    const usesRecorded = begins.length > 0 || body.some((line) => /\brecorded[.(]/.test(line))
    const identifier = name.replace(/[^A-Za-z0-9]+/g, "_").replace(/^(?=\d|$)/, "actor_")
    return [
        "import Testing", "import Trebuchet", "import TrebuchetTesting", "", `@testable import ${module}`, "",
        `@Test(${literal(`recorded calls of ${name}`)})`, `func ${identifier}Calls() async throws {`,
        ...notes.map((line) => `    ${line}`), ...(usesRecorded ? ["    let recorded = RecordedState()"] : []),
        "    try await withTestServer { server in", `        let actor = ${actor}(actorSystem: server.actorSystem)`,
        ...(begins.length > 0 ? ["        _ = try await actor.whenLocal { actor in"] : []),
        ...begins.map(([stream, { initial }]) => `            actor.${property(stream)} = try recorded(${raw(written(initial))})`),
        ...(begins.length > 0 ? ["        }"] : []), `        await server.expose(actor, as: ${literal(name)})`,
        "    } body: { client, _ in", `        let actor = try client.resolve(${actor}.self, id: ${literal(name)})`,
        ...body.map((line) => `        ${line}`), "    }", "}", "",
    ].join("\n")
}

function bodyOf(calls, versions, states) {
    const [known, end] = madeByCalls(versions.toReversed())
    const writer = new Writer(known, states)
    for (const call of calls) writer.plan(call)
    const at = calls.findIndex((call) => call.time && ended(call) >= end)
    const compared = at < 0 ? calls : calls.slice(0, at)
    const lines = compared.flatMap((call) => writer.statements(call))
    lines.push(...writer.comparison())
    if (at < 0) return lines
    writer.isWhole = false
    return [...lines, "// From here on, the state also changed without calls.", ...calls.slice(at).flatMap((call) => writer.statements(call))]
}

class Writer {
    /** Calls after which a state is compared, because it contains identities that they created. */
    checks = new Map()
    /** Whether all calls that changed a state are included. */
    isWhole = true

    constructor(versions, states) {
        Object.assign(this, { versions, states })
        this.changed = new Set(versions.flatMap(({ calls }) => calls.map(({ call }) => call)))
        this.there = new Set([...states.values()].flatMap(({ initial }) => identities(initial)))
        this.lacking = new Set()
    }

    /** Finds the origin of the identities in the arguments of a call: the caller, or an earlier call. */
    plan({ call, arguments: list }) {
        for (const id of identities(list)) {
            if (this.there.has(id)) continue
            const maker = this.versions.find(({ stream, version }) => identities(this.states.get(stream)?.at(version)).includes(id))
            const isMade = maker?.calls.length > 0 && maker.calls.every((each) => each.call < call && !identities(each.arguments).includes(id))
            // The caller has it from now on.
            if (!isMade) this.there.add(id)
            else if (maker.calls.length > 1 || this.states.get(maker.stream).initial === undefined) this.lacking.add(id)
            else {
                const check = this.checks.get(maker.calls[0].call)
                if (!check) this.checks.set(maker.calls[0].call, { maker, ids: [id] })
                else check.ids.push(id)
            }
        }
    }

    statements(call) {
        const { method, arguments: list, redacted, error, refused, others } = call
        const check = this.checks.get(call.call)
        const forget = () => check?.ids.forEach((id) => this.lacking.add(id))
        const omit = (why) => {
            if (this.changed.has(call.call)) this.isWhole = false
            forget()
            return [`// ${commentText(method ?? "A call")} is omitted: ${commentText(why)}.`]
        }
        const found = /^([\p{L}_][\p{L}\p{N}_]*)\((.*)\)$/u.exec(method ?? "")
        if (refused !== undefined && refused !== null) return omit(`it was rejected before execution with ${error}${refused ? `: ${refused}` : ""}`)
        if (!found) return omit("no such method")
        if (!list) return omit(redacted ? "its arguments are redacted" : "its arguments are unknown")
        // They would not compile in Swift either.
        if (error === "invalidArguments") return omit("its arguments were invalid")
        if (externalErrors.includes(error)) return omit(`it ended with ${error}, which does not depend on the actor alone`)
        if (others?.length > 0) return omit(`it calls ${others.map((name) => `'${name}'`).join(" and ")}, and the test has no other actors`)
        if (identities(list).some((id) => this.lacking.has(id))) return omit("it refers to an unknown identity")
        const labels = found[2].split(":").slice(0, -1)
        const given = labels.map((label, at) => (label === "_" ? value(list[at]) : `${label}: ${value(list[at])}`)).join(", ")
        const text = `try await actor.${found[1]}(${given})`
        if (error) return [`await #expect(throws: (any Error).self) { _ = ${text} }`]
        if (check && !this.isWhole) forget()
        const isChecked = check && this.isWhole
        return [`_ = ${text}`, ...(isChecked ? [this.#compare(check.maker.stream, this.states.get(check.maker.stream).at(check.maker.version))] : [])]
    }

    #compare(stream, state) {
        return `#expect(await recorded.matches(${raw(written(state))}, in: actor.${stream}()))`
    }

    /** The statements that compare the final states. */
    comparison() {
        if (!this.isWhole) return ["// States are not compared: a call that changed them is omitted."]
        return [...this.states].flatMap(([stream, { initial, at }]) => {
            const last = this.versions.findLast((version) => version.stream === stream)
            const state = last ? at(last.version) : initial
            return initial === undefined || state === undefined ? [] : [this.#compare(stream, state)]
        })
    }
}
