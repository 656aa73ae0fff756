// A Swift test that makes the calls of an actor again.

const uuid = /^[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}$/i

/** A text as a literal of Swift. */
function literal(text) {
    const escaped = text.replace(/[\\"]/g, "\\$&").replace(/[\u0000-\u001f\u007f\u2028\u2029]/g, (one) => `\\u{${one.codePointAt(0).toString(16)}}`)
    return `"${escaped}"`
}

/** A value for a parameter whose type is not known here: literals fit many, and JSON fits all. */
function value(json, made) {
    if (typeof json === "string") return uuid.test(json) ? (made.get(json) ?? null) : literal(json)
    if (json === null) return "nil"
    if (typeof json !== "object") return String(json)
    if (Array.isArray(json) && json.length > 0 && json.every((part) => typeof part === typeof json[0] && typeof part !== "object" && !uuid.test(part))) {
        return `[${json.map((part) => value(part, made)).join(", ")}]`
    }
    return `try value(${literal(JSON.stringify(json))})`
}

/** Identities that are somewhere in a value. */
function identities(json) {
    if (typeof json !== "object" || json === null) return []
    return [...(typeof json.id === "string" && uuid.test(json.id) ? [json.id] : []), ...Object.values(json).flatMap(identities)]
}

/**
 * The test. It expects that calls are answered, or are refused, as they were; an identity that an earlier call has made is the one that it
 * makes this time. What cannot be made again is left out, with the reason.
 *
 * - calls: the oldest first, with their arguments.
 * - versions: what they made, so that it is known which of them made an identity.
 */
export function swiftTest({ name, type, calls, versions }) {
    const [module, ...parts] = type.split(".")
    const makers = new Map()
    for (const { calls: causes, patch } of versions) {
        if (causes.length !== 1) continue
        for (const id of (patch ?? []).flatMap(({ op, value }) => (op === "add" ? identities(value) : []))) makers.set(id, causes[0].call)
    }
    const wanted = new Set(calls.flatMap(({ arguments: list }) => list ?? []).map((id) => makers.get(id)).filter(Boolean))
    const made = new Map()
    const lines = calls.map((call) => statement(call, { wanted, made, makers }))
    const helper = lines.some((line) => line.includes("value(\""))
        ? ["", "/// What stands there as JSON.", "private func value<Value: Decodable>(_ json: String) throws -> Value {", "    try JSONDecoder().decode(Value.self, from: Data(json.utf8))", "}"]
        : []
    return [
        ...(helper.length ? ["import Foundation"] : []), "import Testing", "import Trebuchet", "import TrebuchetTesting", "",
        `@testable import ${module}`, "", `@Test(${literal(`the calls that ${name} had`)})`, `func ${name.replace(/[^A-Za-z0-9]+/g, "_").replace(/^(?=\d|$)/, "actor_")}Calls() async throws {`,
        "    try await withTestServer { server in",
        `        await server.expose(${parts.join(".")}(actorSystem: server.actorSystem), as: ${literal(name)})`,
        "    } body: { client, _ in",
        `        let actor = try client.resolve(${parts.join(".")}.self, id: ${literal(name)})`,
        ...lines.map((line) => `        ${line}`), "    }", "}", ...helper, "",
    ].join("\n")
}

function statement({ call, method, arguments: list, redacted, error, refused }, { wanted, made, makers }) {
    const leave = (why) => `// ${method?.replace(/[\r\n]/g, " ")} is left out: ${why}.`
    const found = /^([\p{L}_][\p{L}\p{N}_]*)\((.*)\)$/u.exec(method ?? "")
    if (refused || !found) return leave("there is no such method, or it was refused before it began")
    if (!list) return leave(redacted ? "its arguments are shown to nobody" : "its arguments are not known")
    const labels = found[2].split(":").slice(0, -1)
    const values = list.map((part) => value(part, made))
    if (values.includes(null)) return leave("it names what was there before")
    const made1 = labels.map((label, at) => (label === "_" ? values[at] : `${label}: ${values[at]}`)).join(", ")
    const text = `try await actor.${found[1]}(${made1})`
    if (error) return `await #expect(throws: (any Error).self) { _ = ${text} }`
    if (!wanted.has(call)) return `_ = ${text}`
    for (const [id, maker] of makers) if (maker === call) made.set(id, `made${call}.id`)
    return `let made${call} = ${text}`
}
