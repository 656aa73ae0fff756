import type { ActorInfo, ActorShape, ActorType } from "./types.js"

/** Makes a type of actors of what the generator has found out about it. */
export function actorType<Shape extends ActorShape>(info: ActorInfo<Shape>): ActorType<Shape> {
    return info
}
