internal import Distributed

/// Names of distributed methods: `addTodo(title:)` on the wire, a mangled name in the program.
enum TargetNames {
    /// The name on the wire for a target of the program: the last part of `Module.Type.addTodo(title:)`.
    static func wireName(of target: RemoteCallTarget) -> String {
        let readable = target.description
        let beforeLabels = readable.prefix { $0 != "(" }
        guard let dot = beforeLabels.lastIndex(of: ".") else { return readable }
        return String(readable[readable.index(after: dot)...])
    }

    /// Whether a mangled name is that of a method of this very type. The runtime calls any distributed method that it knows
    /// with any actor, and takes the one for the other: a name from the network is checked first.
    static func isMethod(_ identifier: String, of type: any DistributedActor.Type) -> Bool {
        guard identifier.hasPrefix("$s") else { return false }
        let readable = RemoteCallTarget(identifier).description.prefix { $0 != "(" }
        guard let dot = readable.lastIndex(of: ".") else { return false }
        return readable[..<dot] == String(reflecting: type).prefix { $0 != "<" }
    }

    /// Whether a type is the stub of a `@Resolvable` protocol, whose actor may be marked `@Trebuchet` elsewhere.
    static func isStub(_ type: Any.Type) -> Bool { "\(type)".hasPrefix("$") }

    /// The name on the wire for what an older client sends: a mangled name, or a readable one, which stays as it is.
    static func wireName(ofIdentifier identifier: String) -> String {
        guard identifier.hasPrefix("$s") else { return identifier }
        return wireName(of: RemoteCallTarget(identifier))
    }
}
