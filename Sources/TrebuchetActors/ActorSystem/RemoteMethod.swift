internal import Distributed
internal import Synchronization

/// What a caller knows of a method that lives elsewhere.
package struct RemoteMethod {
    /// The name on the wire.
    package let name: String
    package let isIdempotent: Bool
    /// Generic parameters of its own; nil when its dispatch table is not known here.
    let generics: Int?
}

/// The methods that were called so far, by their names in the program.
package final class RemoteMethods: Sendable {
    private let known = Mutex<[String: RemoteMethod]>([:])

    package init() {}

    /// The name on the wire for a target. A method that is in no dispatch table, because the actor has none or the method
    /// stands in an extension, is called by its mangled name, which is how its server finds it.
    package func method<Act: DistributedActor>(_ target: RemoteCallTarget, of type: Act.Type) -> RemoteMethod {
        if let known = known.withLock({ $0[target.identifier] }) { return known }
        let readable = TargetNames.wireName(of: target)
        let table = type as? any TrebuchetActor.Type
        let entry = table?.entry(readable)
        // The stub of a `@Resolvable` protocol does not know how the actor's methods are marked.
        let isKnown = table == nil ? TargetNames.isStub(type) : entry != nil
        let method = RemoteMethod(
            name: isKnown ? readable : target.identifier, isIdempotent: entry?.isIdempotent ?? false,
            generics: entry?.generics)
        known.withLock { $0[target.identifier] = method }
        return method
    }
}

/// Names of distributed methods: `addTodo(title:)` on the wire, a mangled name in the program.
package enum TargetNames {
    /// The name on the wire for a target of the program: the last part of `Module.Type.addTodo(title:)`.
    static func wireName(of target: RemoteCallTarget) -> String {
        let readable = target.description
        let beforeLabels = readable.prefix { $0 != "(" }
        guard let dot = beforeLabels.lastIndex(of: ".") else { return readable }
        return String(readable[readable.index(after: dot)...])
    }

    /// Whether a type is the stub of a `@Resolvable` protocol, whose actor may be marked `@Trebuchet` elsewhere.
    static func isStub(_ type: any Any.Type) -> Bool { "\(type)".hasPrefix("$") }
}
