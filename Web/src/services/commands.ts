import type { Document, Writes } from "./types.js"
import { copied, isSame, merged, withoutNull } from "./values.js"

/** A command in its wire form: an object with one member, its kind. */
export type Command = Record<string, any>

/** The parameters of each kind that precede the options. */
const kinds = {
    create: "fields", update: "id fields", merge: "id fields", increment: "id field by", link: "id field target", unlink: "id field target",
    expire: "id expiresIn", delete: "id", check: "id",
}

/** Returns the methods that create commands; `put` handles each command. */
export function commands<Result>(put: (command: Command) => Result): Writes<Result> {
    const made: any = {}
    for (const [kind, text] of Object.entries(kinds)) {
        const names = text.split(" ")
        made[kind] = (...args: any[]) => {
            const values = Object.fromEntries(names.map((name, index) => [name, args[index] ?? (name === "by" ? 1 : undefined)]))
            return put({ [kind]: { ...values, id: String(values.id ?? values.fields.id ?? ""), ...args[names.length] } })
        }
    }
    return made
}

/** Returns the id of the document that a command writes to. */
export const idOf = (command: Command): string => Object.values(command)[0].id

/**
 * Returns the document after a command, with the same result as on the server; undefined if there is no document. Throws if the command
 * fails. Pure.
 *
 * @param number a placeholder for the revision that the server will assign.
 * @param creator the user who makes the command; empty for an anonymous user.
 */
export function perform(command: Command, document: Document | undefined, number: number, time: number, creator?: string): Document | undefined {
    const kind = Object.keys(command)[0]!
    const { id, fields = {}, field, target, by, if: values = {}, ifRevision, ifAbsent, expiresIn } = command[kind]
    const need = (condition: unknown): void => {
        if (!condition) throw kind
    }
    need(!ifAbsent || !document)
    need((ifRevision ?? document?.revision) === document?.revision)
    for (const name of Object.keys(values)) need(document && isSame(document.fields[name], values[name]))

    // The local time stands in for the server's time until the server has set it.
    const set = copied(fields, (value) => (isSame(value, { $serverTime: true }) ? time : value))
    const written = { revision: number, updatedAt: time }
    const end = expiresIn && { expiresAt: time + expiresIn * 1000 }
    if (kind === "create") {
        need(!document)
        return { id, fields: set, ...(creator && { creator }), created: number, createdAt: time, ...written, ...end }
    }
    if (kind === "delete") return undefined
    need(document)
    const { fields: old, expiresAt, ...rest } = document!
    const change = (fields: any): Document => ({ ...document!, fields, ...written })
    if (kind === "update") return change(withoutNull({ ...old, ...set }))
    if (kind === "merge") return change(merged(old, set))
    if (kind === "expire") return { ...rest, fields: old, ...written, ...end }
    if (kind === "increment") {
        const count = old[field] ?? 0
        need(typeof count === "number")
        return change({ ...old, [field]: count + by })
    }
    if (/link/.test(kind)) {
        const targets = old[field] ?? []
        need(Array.isArray(targets))
        const others = targets.filter((each: unknown) => !isSame(each, target))
        if ((others.length < targets.length) === (kind === "unlink")) return change({ ...old, [field]: kind === "link" ? [...targets, target] : others })
    }
    return document
}
