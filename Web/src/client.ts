import { Calls } from "./calls.js"
import { Connection } from "./connection.js"
import { browser, Environment } from "./environment.js"
import { ObservedEvents } from "./events.js"
import { ObservedState } from "./state.js"
import { Streams } from "./streams.js"
import type { ActorInfo, Client, ConnectOptions, MethodInfo, StreamInfo, UntypedActor, UntypedCallOptions } from "./types.js"

/**
 * Connects to a server, `ws://localhost:8080` for example, or `/` for the origin of the page. Returns immediately, and retries until
 * `close()`. For a service with several servers, such as the nodes of a cluster, `url` is a list. The client begins with a random server of
 * the list. It continues with the next one when a connection is lost, cannot be made, or the server drains.
 */
export function connect(url: string | URL | readonly (string | URL)[], options: ConnectOptions = {}): Client {
    const environment: Environment = { ...browser(), ...(options as any).environment }
    const coder = options.json ?? JSON
    const addresses = [url].flat().map(String)

    // Calls and streams share one sequence of increasing numbers.
    let number = 0
    const nextNumber = (): number => ++number
    const streams = new Streams(environment, nextNumber, options)
    const calls = new Calls(options, environment, coder, nextNumber, streams._beginning)
    const connection = new Connection(addresses, options, environment, coder, {
        _opened: () => streams._opened(),
        _greeted(line) {
            calls._greeted(line)
            // Requests the streams whose message was too large before the server announced its limits.
            streams._opened()
        },
        _received(kind, payload, line) {
            if (kind !== "response") streams._received(kind, payload, line)
            else if (!calls._answered(payload)) streams._refused(payload, line)
            // A stream that has begun no longer counts as a call, so a call can be sent.
            if (kind !== "streamData") calls._sendNext()
        },
        _lost(line, error) {
            streams._lost(line)
            calls._lost(line, error)
        },
        _gaveUp(error) {
            calls._gaveUp(error)
            streams._gaveUp(error)
        },
        _isUsing: (line) => calls._isUsing(line),
    })
    calls._connection = streams._connection = connection

    const state = (actorID: string, { target, value }: StreamInfo): ObservedState<any> =>
        new ObservedState(streams, streams._source({ actorID, targetIdentifier: target }, false), value)
    const events = (actorID: string, { target, value }: StreamInfo): ObservedEvents<any> =>
        new ObservedEvents(
            streams,
            streams._source({ actorID, targetIdentifier: target }, true),
            value,
            options.eventBuffer ?? 1000
        )

    const untyped = (id: string): UntypedActor => {
        // Returns the same object each time, as views require that call this during rendering.
        const made = new Map<string, ObservedState<any>>()
        return {
            call: (target, args = [], options) => calls._call(id, { target }, args, options),
            state(target = "observeState") {
                if (!made.has(target)) made.set(target, state(id, { target }))
                return made.get(target)!
            },
            events: (target) => events(id, { target }),
        }
    }

    const typed = (info: ActorInfo<any>, id: string): any => {
        const actor: any = {}
        for (const [name, method] of Object.entries<MethodInfo>(info.methods ?? {})) {
            // Each parameter has a colon in the target; the argument after the last parameter is the options.
            const count = method.target.split(":").length - 1
            actor[name] = (...args: unknown[]) => {
                const given = Array.from({ length: count }, (_, index) => args[index])
                return calls._call(id, method, given, args[count] as UntypedCallOptions)
            }
        }
        // Creates each object on first access and returns the same object afterwards.
        const lazily = (make: typeof state | typeof events, infos: Record<string, StreamInfo> = {}): void => {
            for (const [name, info] of Object.entries(infos)) {
                let made: unknown
                Object.defineProperty(actor, name, { get: () => (made ??= make(id, info)), enumerable: true })
            }
        }
        lazily(state, info.states as any)
        lazily(events, info.events as any)
        return actor
    }

    return {
        status: connection._status,
        actor: (first: any, id?: string) => (id === undefined ? untyped(first) : typed(first, id)),
        reconnect: () => connection._reconnect(),
        close: () => connection._close(),
    } as Client
}
