import { useMemo, useSyncExternalStore } from "react"
import type { Actor, ActorShape, ActorType, Client, Part, State, Store, UntypedActor } from "./types.js"

const nothing = (): undefined => undefined

/** An actor, the same one in each rendering. */
export function useActor(client: Client, id: string): UntypedActor
export function useActor<Shape extends ActorShape>(client: Client, type: ActorType<Shape>, id: string): Actor<Shape>
export function useActor(client: Client, first: any, id?: any): any {
    return useMemo(() => (client.actor as any)(first, id), [client, first, id])
}

/** The value of a state, or of a part of it, or of a status: the component is rendered again when it changes. */
export function useActorState<T, Path extends string>(state: State<T>, path: Path): Part<T, Path> | undefined
export function useActorState<T>(store: Store<T>): T
export function useActorState(state: any, path?: string): any {
    const store: Store<unknown> = useMemo(() => (path ? state.at(path) : state), [state, path])
    // Not the current value: the page of the server does not have what has come since.
    return useSyncExternalStore(store.subscribe, store.getSnapshot, store.getServerSnapshot ?? nothing)
}
