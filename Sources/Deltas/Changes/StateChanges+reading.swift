internal import TrebuchetWire

/// Reading changes, operation by operation or part by part.
extension StateChanges {
    /// One change.
    public struct Operation: Sendable {
        /// What is done; the other operations of RFC 6902, `copy` and `test`, are no changes.
        public enum Kind: String, Sendable {
            /// As in RFC 6902 §4.
            case add, remove, replace, move
        }

        /// What is done.
        public let kind: Kind
        /// The names and indices that lead to the place; none when the whole value is meant.
        public let path: [String]
        /// The place that a `move` takes its value from.
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

        /// The value of an `add` or `replace`. Throws ``StateChangesError`` when there is none of this type.
        public func value<Value: Decodable>(as type: Value.Type) throws -> Value {
            guard !bytes.isEmpty else { throw StateChangesError("a '\(kind)' has no value") }
            do {
                return try bytes.withUnsafeBytes {
                    try (StateChanges.coder ?? ValueCoder()).decode(type, from: $0)
                }
            } catch {
                throw StateChangesError("\(error)")
            }
        }

        /// That this change does not fit, because of what `problem` says.
        public func error(_ problem: String) -> StateChangesError {
            let place = from.map { " from '/\($0.joined(separator: "/"))'" } ?? ""
            return StateChangesError("'\(kind)'\(place) at '/\(path.joined(separator: "/"))': \(problem)")
        }
    }

    /// The changes in their order.
    public var operations: some Sequence<Operation> {
        steps.lazy.map { Operation($0, in: self) }
    }

    /// Changes a value member by member, and as a whole where the whole is replaced.
    ///
    /// The body makes the changes of one member and returns true, or returns false when the value has no such member. When
    /// it does, or throws, the value is as it was.
    public func apply<State: Decodable>(
        to state: inout State, _ body: (inout State, _ member: String, _ changes: StateChanges) throws -> Bool
    ) throws {
        try checkIsKnown()
        var changed = state
        var rest = steps
        while let step = rest.first {
            guard step.path.count > depth else {
                let operation = Operation(step, in: self)
                guard step.kind == .replace else { throw operation.error("the whole can only be replaced") }
                changed = try operation.value(as: State.self)
                rest.removeFirst()
                continue
            }
            let member = step.path[depth]
            let end = rest.firstIndex { $0.path.count <= depth || $0.path[depth] != member } ?? rest.endIndex
            guard rest[..<end].allSatisfy({ $0.from == nil || $0.from!.count > depth && $0.from![depth] == member })
            else { throw StateChangesError("a 'move' from one member to another") }
            var part = self
            part.steps = rest[..<end]
            part.depth += 1
            let name = String(decoding: member.bytes, as: UTF8.self)
            guard try body(&changed, name, part) else {
                throw StateChangesError("\(State.self) has no member '\(name)' that changes")
            }
            rest = rest[end...]
        }
        state = changed
    }
}
