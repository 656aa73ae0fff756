import { useMemo, useSyncExternalStore } from "react"
import type { Actor, ActorShape, ActorType, Client, Part, State, Store, UntypedActor } from "./types.js"

const nothing = (): undefined => undefined

/** Returns an actor: the same object in each rendering. */
export function useActor(client: Client, id: string): UntypedActor
export function useActor<Shape extends ActorShape>(client: Client, type: ActorType<Shape>, id: string): Actor<Shape>
export function useActor(client: Client, first: any, id?: any): any {
    return useMemo(() => (client.actor as any)(first, id), [client, first, id])
}

/** Returns the value of a state, of a part of it, or of a status. The component is rendered again when the value changes. */
export function useActorState<T, Path extends string>(state: State<T>, path: Path): Part<T, Path> | undefined
export function useActorState<T>(store: Store<T>): T
export function useActorState(state: any, path?: string): any {
    const store: Store<unknown> = useMemo(() => (path ? state.at(path) : state), [state, path])
    // This is not the current value: the page from the server lacks later changes.
    return useSyncExternalStore(store.subscribe, store.getSnapshot, store.getServerSnapshot ?? nothing)
}
