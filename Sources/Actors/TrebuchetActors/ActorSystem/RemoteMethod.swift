internal import Distributed
internal import Synchronization

/// The properties of a remote method that a caller needs.
package struct RemoteMethod {
    /// The name on the wire.
    package let name: String
    package let isIdempotent: Bool
    /// The number of the method's generic parameters, without those of the actor type; nil for a stub.
    let generics: Int?
}

/// A cache of the methods called so far, by their mangled names.
package final class RemoteMethods: Sendable {
    let known = Mutex<[String: RemoteMethod]>([:])

    package init() {}

    /// Returns the method for a target. Throws `methodNotFound` if no server can have it in a dispatch table: its actor type is
    /// not marked `@Trebuchet`, or it is declared in an extension.
    package func method<Act: DistributedActor>(
        _ target: RemoteCallTarget, of type: Act.Type
    ) throws(TrebuchetError) -> RemoteMethod {
        if let known = known.withLock({ $0[target.identifier] }) { return known }
        let readable = TargetNames.wireName(of: target)
        let table = type as? any TrebuchetActor.Type
        let entry = table?.entry(readable)
        // The stub of a `@Resolvable` protocol does not contain the marks of the actor's methods.
        guard entry != nil || table == nil && TargetNames.isStub(type) else {
            throw TrebuchetError(
                .methodNotFound,
                "'\(type).\(readable)' can be called only where the actor lives: "
                    + (table == nil ? "mark the actor @Trebuchet" : "move the method from the extension into the actor")
            )
        }
        let method = RemoteMethod(
            name: readable, isIdempotent: entry?.isIdempotent ?? false, generics: entry?.generics)
        known.withLock { $0[target.identifier] = method }
        return method
    }
}

/// Converts names of distributed methods: `addTodo(title:)` on the wire, a mangled name in the program.
package enum TargetNames {
    /// Returns the wire name of a target: the last part of `Module.Type.addTodo(title:)`.
    static func wireName(of target: RemoteCallTarget) -> String {
        let readable = target.description
        let beforeLabels = readable.prefix { $0 != "(" }
        guard let dot = beforeLabels.lastIndex(of: ".") else { return readable }
        return String(readable[readable.index(after: dot)...])
    }

    /// Returns whether a type is the stub of a `@Resolvable` protocol, whose actor may be marked `@Trebuchet` elsewhere.
    static func isStub(_ type: any Any.Type) -> Bool { "\(type)".hasPrefix("$") }
}
