import type { Backend } from "./backend.js"
import { needSame } from "./build.js"
import type { LiveCollection } from "./collection.js"
import type { Outcome, PendingWrite, PendingWrites } from "./pending.js"
import { pauseAfter, reasonOf, wait } from "./refusals.js"
import { sentenceOf } from "./sentences.js"
import { type Client, type JSONCoder, TrebuchetError } from "./trebuchet.js"

/** What the server takes at once. */
const batchLimit = 32
const batchBytes = 256 << 10

/** What is to be sent next: the first that are not answered, those that were sent before too, all of one tab. */
export function batchOf(writes: PendingWrites, limit = batchLimit, json: JSONCoder = JSON): PendingWrite[] {
    const { _waiting: waiting } = writes
    let bytes = 0
    const end = waiting.findIndex((write, index) => {
        if (index === limit || write.isBeingKept || write.secret !== waiting[0]!.secret) return true
        bytes += json.stringify(write.commands).length
        return index && bytes > batchBytes
    })
    return end < 0 ? waiting : waiting.slice(0, end)
}

/**
 * Sends what waits of an account: in order, a batch at a time, each until it is answered. The backend comes by itself: in a collection of
 * another version it may have another name.
 */
export async function send(backend: Backend, collection: LiveCollection, account: string, writes: PendingWrites): Promise<void> {
    needSame(backend)
    let own: Client | undefined
    /** So many go one by one: the server has refused all of them together, perhaps for one that it cannot read. */
    let apart = 0
    try {
        for (let failures = 0; collection._isTurnOf(account); ) {
            const batch = batchOf(writes, apart ? 1 : undefined, backend._json)
            if (!batch.length) return
            for (const write of batch) write.wasSent = true
            if (account !== backend._account) own ??= backend._anonymous()
            const client = own ?? backend.client
            const line = backend._line
            const { secret } = batch[0]!
            const mutations = batch.map(({ number, commands }) => ({ number, commands }))
            let outcomes: Outcome[]
            try {
                outcomes = await collection._call("commit(_:from:as:)", [mutations, secret, account], own ? 30_000 : 0, client)
            } catch (error: any) {
                const pause = pauseAfter(error, failures++, account)
                if (pause !== undefined) {
                    await wait(pause)
                    // The connection is another one's: of another tab's session, or from before.
                    if (reasonOf(error) === "otherAccount" && collection._isTurnOf(account) && !own) backend.client.reconnect()
                    continue
                }
                if (batch[1]) {
                    apart = batch.length
                    continue
                }
                outcomes = batch.map(({ number }) => ({ number, revision: 0, error }))
            }
            failures = 0
            if (apart) apart--
            // Queries have their numbers for one connection.
            if (!own && line === backend._line) tell(collection, outcomes)
            await settle(collection, writes, secret, outcomes)
        }
    } finally {
        if (own) backend._leave(own)
    }
}

function tell(collection: LiveCollection, outcomes: Outcome[]): void {
    const through = Math.max(...outcomes.map(({ revision }) => revision))
    const { shown = {} } = outcomes.at(-1) ?? {}
    for (const query of collection._open) query._isTold(shown, through)
}

/** Notes an answer. A write that was refused is forgotten. Gives the write. */
export function settleOne(writes: PendingWrites, secret: string, { number, revision, error }: Outcome): PendingWrite | undefined {
    const write = writes._all.find((each) => each.secret === secret && each.number === number)
    if (write && !error) write.revision = revision
    else writes._remove(write)
    return write
}

async function settle(collection: LiveCollection, writes: PendingWrites, secret: string, outcomes: Outcome[]): Promise<void> {
    const settled = outcomes.map((outcome) => ({ ...outcome, _write: settleOne(writes, secret, outcome) }))
    collection._forgetSeen()
    collection._show()
    for (const { error, index, _write: write } of settled) {
        if (!write) continue
        if (error) {
            const refusal = error instanceof Error ? error : new TrebuchetError("application", sentenceOf(error), "TrebuchetServices.CollectionError", error)
            collection._refused(write, refusal as TrebuchetError, index)
        } else write._end?.()
    }
    // Before the next are sent: the server remembers so many outcomes and no more. What stays is sent again, and not done again.
    await collection._backend._store?.remove(outcomes.map(({ number }) => ({ secret, number }))).catch(() => {})
}
