internal import TrebuchetWire

/// Reading changes, by operation or by member.
extension StateChanges {
    /// One change.
    public struct Operation: Sendable {
        /// The kind of an operation. The other operations of RFC 6902, `copy` and `test`, do not occur in changes.
        public enum Kind: String, Sendable {
            /// An operation of RFC 6902 §4.
            case add, remove, replace, move
        }

        /// The kind of the operation.
        public let kind: Kind
        /// The names and indices that lead to the target; empty for the whole value.
        public let path: [String]
        /// The source path of a `move`.
        public let from: [String]?
        private let bytes: ArraySlice<UInt8>

        init(_ step: Step, in changes: StateChanges) {
            func names(_ path: Path) -> [String] {
                (changes.depth..<path.count).map { String(decoding: path[$0].bytes, as: UTF8.self) }
            }
            kind = step.kind
            path = names(step.path)
            from = step.from.map(names)
            bytes = changes.bytes[step.value]
        }

        /// Decodes the value of an `add` or `replace`. Throws ``StateChangesError`` if there is no value of this type.
        public func value<Value: Decodable>(as type: Value.Type) throws -> Value {
            guard !bytes.isEmpty else { throw StateChangesError("operation '\(kind)' requires a value") }
            do {
                return try bytes.withUnsafeBytes {
                    try (StateChanges.coder ?? ValueCoder()).decode(type, from: $0)
                }
            } catch {
                throw StateChangesError("\(error)")
            }
        }

        /// Returns an error for this operation with `problem` as the reason.
        public func error(_ problem: String) -> StateChangesError {
            let source = from.map { " from '/\($0.joined(separator: "/"))'" } ?? ""
            return StateChangesError("'\(kind)'\(source) at '/\(path.joined(separator: "/"))': \(problem)")
        }
    }

    /// The operations, in order.
    public var operations: some Sequence<Operation> {
        steps.lazy.map { Operation($0, in: self) }
    }

    /// Changes a value member by member, and as a whole where an operation replaces the whole.
    ///
    /// The body applies the changes of one member and returns true, or returns false for an unknown member. If it returns false
    /// or throws, the value is unchanged.
    public func apply<State: Decodable>(
        to state: inout State, _ body: (inout State, _ member: String, _ changes: StateChanges) throws -> Bool
    ) throws {
        try checkIsKnown()
        var changed = state
        var remaining = steps
        while let step = remaining.first {
            guard step.path.count > depth else {
                let operation = Operation(step, in: self)
                guard step.kind == .replace else { throw operation.error("the root value can only be replaced") }
                changed = try operation.value(as: State.self)
                remaining.removeFirst()
                continue
            }
            let member = step.path[depth]
            let end = remaining.firstIndex { $0.path.count <= depth || $0.path[depth] != member } ?? remaining.endIndex
            guard
                remaining[..<end].allSatisfy({ $0.from == nil || $0.from!.count > depth && $0.from![depth] == member })
            else { throw StateChangesError("'move' cannot cross members") }
            var part = self
            part.steps = remaining[..<end]
            part.depth += 1
            let name = String(decoding: member.bytes, as: UTF8.self)
            guard try body(&changed, name, part) else {
                throw StateChangesError("\(State.self) has no member '\(name)'")
            }
            remaining = remaining[end...]
        }
        state = changed
    }
}
