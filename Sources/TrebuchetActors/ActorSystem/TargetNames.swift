internal import Distributed

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
