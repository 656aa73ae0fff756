// A Swift test that makes the calls of an actor again, and compares what it shows then.
import { isExact, written } from "./inspector-json.js"

const uuid = /[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}/gi
/** What a line may not have in it, and what is not seen where it stands. */
const unseen = /[\p{Cc}\p{Cf}\u2028\u2029]/gu
const longestReason = 300

/** A text as a literal of Swift. */
function literal(text) {
    const escaped = text.replace(/[\\"]/g, "\\$&").replace(unseen, (one) => `\\u{${one.codePointAt(0).toString(16)}}`)
    return `"${escaped}"`
}

/** JSON as a literal in which nothing is escaped but by JSON itself. */
function raw(json) {
    const units = (text) => Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`)
    const text = json.replace(unseen, (one) => units(one).join(""))
    let signs = "#"
    while (text.includes(`"${signs}`) || text.includes(`\\${signs}`)) signs += "#"
    return `${signs}"${text}"${signs}`
}

/** What others have written, in a comment of one line. */
function said(text) {
    const line = text.replace(unseen, " ")
    return line.length > longestReason ? `${line.slice(0, longestReason)}…` : line
}

/** A value for a parameter whose type is not known here: whole numbers fit as they are, and all else is read as the type that is wanted. */
function value(json) {
    if (json === null) return "nil"
    return typeof json === "boolean" || Number.isSafeInteger(json) ? String(json) : `recorded(${raw(written(json))})`
}

const identities = (json) => (isExact(json) ? [] : written(json ?? null).match(uuid) ?? [])
const property = (stream) => stream.replace(/^observe/, "").replace(/^./, (first) => first.toLowerCase())
const ended = ({ time, seconds }) => time + 1_000 * (seconds ?? 0)
/** Errors that come of the way to the actor, or of who called it. */
const foreign = ["cancelled", "timeout", "unavailable", "rateLimited", "unknownOutcome"]

/**
 * The test of an actor.
 *
 * - shown: what the inspector shows of the actor.
 * - known: the values that the states had, by their streams.
 */
export function copiedTest(shown, known) {
    const { name, type, calls, recorded } = shown
    return swiftTest({
        name, type, calls: calls.toReversed(), versions: recorded?.versions ?? [], followed: recorded?.followed ?? null, states: recordedStates(shown, known),
    })
}

/** What is known of the states of an actor, as `swiftTest` wants it. */
export function recordedStates({ states, recorded }, known) {
    const versions = recorded?.versions ?? []
    // What was not noted may have changed the others as well.
    const isPartial = versions.some(({ partial }) => partial)
    return new Map(states.map(({ stream, value }) => {
        const oldest = versions.findLast((version) => version.stream === stream)
        const values = known.get(stream)
        const unchanged = isPartial ? undefined : value ?? undefined
        return [stream, { initial: oldest ? values?.before(oldest) : unchanged, at: (version) => values?.at(version) }]
    }))
}

/** The versions, the oldest first, up to the first that others than the calls have made. */
function madeByCalls(versions) {
    const end = versions.findIndex(({ calls, moreCalls, partial }) => calls.length === 0 || moreCalls > 0 || partial)
    return end < 0 ? [versions, Infinity] : [versions.slice(0, end), versions[end].time]
}

/**
 * The calls that came behind the states that the actor begins with, and whether these are known at all: what was called before is in them already.
 *
 * - followed: since when all versions are known.
 */
function behind(calls, versions, followed) {
    const makers = new Set(versions.flatMap(({ calls }) => calls.map(({ call }) => call)))
    const first = Math.min(...makers)
    const oldest = versions.at(-1)?.time
    // What it has changed is in a version, or nothing.
    const isFollowed = ({ time }) => (time ?? 0) >= (followed ?? Infinity)
    const isLater = (call) => makers.size > 0 && (!call.call || call.call > first) && (call.time === undefined || call.time === null || ended(call) >= oldest)
    const made = calls.filter((call) => makers.has(call.call) || isFollowed(call) || isLater(call))
    return made.length > 0 || calls.length === 0 ? { made, isKnown: true } : { made: calls, isKnown: false }
}

/**
 * The test. The actor begins with the states that it had before the first of the calls; the calls are expected to be answered, or refused, as they
 * were, and the states to be shown as they were then, as long as the calls alone have made them.
 *
 * - calls: the oldest first, with their arguments.
 * - versions: what they made, the newest first.
 * - states: for each stream `initial`, the value before the first of the versions, and `at(version)`; undefined what is not known.
 * - followed: since when all versions are known, by the clock that times of calls are of; null where that is not known.
 */
export function swiftTest({ name, type, calls, versions, states, followed = 0 }) {
    const [module, ...parts] = type.split(".")
    const { made, isKnown } = behind(calls, versions, followed)
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
    // Lines that are no comments are calls, each of which has to end as it did.
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
    /** Calls behind which a state is looked at, for the identities that they have made. */
    looks = new Map()
    /** Whether no call is left out that has changed something. */
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
            else if (maker.calls.length > 1 || this.states.get(maker.stream).initial === undefined) this.lacking.add(id)
            else {
                const look = this.looks.get(maker.calls[0].call)
                if (!look) this.looks.set(maker.calls[0].call, { maker, ids: [id] })
                else look.ids.push(id)
            }
        }
    }

    statements(call) {
        const { method, arguments: list, redacted, error, refused, others } = call
        const look = this.looks.get(call.call)
        const forget = () => look?.ids.forEach((id) => this.lacking.add(id))
        const leave = (why) => {
            if (this.changed.has(call.call)) this.isWhole = false
            forget()
            return [`// ${said(method ?? "A call")} is omitted: ${said(why)}.`]
        }
        const found = /^([\p{L}_][\p{L}\p{N}_]*)\((.*)\)$/u.exec(method ?? "")
        if (refused !== undefined && refused !== null) return leave(`it was rejected before execution with ${error}${refused ? `: ${refused}` : ""}`)
        if (!found) return leave("no such method")
        if (!list) return leave(redacted ? "its arguments are redacted" : "its arguments are unknown")
        // Nor would they fit in Swift.
        if (error === "invalidArguments") return leave("its arguments were invalid")
        if (foreign.includes(error)) return leave(`it ended with ${error}, which does not depend on the actor alone`)
        if (others?.length > 0) return leave(`it calls ${others.map((name) => `'${name}'`).join(" and ")}, and the test has no other actors`)
        if (identities(list).some((id) => this.lacking.has(id))) return leave("it refers to an unknown identity")
        const labels = found[2].split(":").slice(0, -1)
        const given = labels.map((label, at) => (label === "_" ? value(list[at]) : `${label}: ${value(list[at])}`)).join(", ")
        const text = `try await actor.${found[1]}(${given})`
        if (error) return [`await #expect(throws: (any Error).self) { _ = ${text} }`]
        if (look && !this.isWhole) forget()
        const isLooked = look && this.isWhole
        return [`_ = ${text}`, ...(isLooked ? [this.#compare(look.maker.stream, this.states.get(look.maker.stream).at(look.maker.version))] : [])]
    }

    #compare(stream, state) {
        return `#expect(await recorded.matches(${raw(written(state))}, in: actor.${stream}()))`
    }

    /** What is shown when the calls were made. */
    comparison() {
        if (!this.isWhole) return ["// States are not compared: a call that changed them is omitted."]
        return [...this.states].flatMap(([stream, { initial, at }]) => {
            const last = this.versions.findLast((version) => version.stream === stream)
            const state = last ? at(last.version) : initial
            return initial === undefined || state === undefined ? [] : [this.#compare(stream, state)]
        })
    }
}
