internal import Bytes
internal import TrebuchetWire

/// Changes of a value, as operations on its JSON (RFC 6902).
///
/// They are made in a state's ``DeltaState/takeChanges()`` and read in its ``DeltaState/apply(_:)``. Values are encoded and
/// decoded as whole states are. A patch has at most 65,536 operations; with more the changes are not known.
public struct StateChanges: Sendable {
    /// Kept by where its value is, so that parts of many changes share their bytes.
    struct Step: Sendable {
        let kind: Operation.Kind
        var path: [JSONPointer.Token]
        var from: [JSONPointer.Token]?
        var value: Range<Int>
    }

    static let mostOperations = 65_536

    /// What values are written and read with, while a state's changes are taken or applied for a stream.
    ///
    /// A coder is for one thread; the calls that it is bound for do not suspend.
    @TaskLocal static var coder: ValueCoder?

    var steps: ArraySlice<Step> = []
    /// The values.
    var bytes: [UInt8] = []
    /// How many names at the beginning of each path lead to the value that these are the changes of.
    var depth = 0
    /// False when something changed that no operation tells: the whole value must be sent.
    public private(set) var isKnown = true
    /// The marks of the versions that the changes are between.
    var start = ChangeMark.none
    var end = ChangeMark.none

    /// No changes.
    public init() {}

    /// Whether nothing changed.
    public var isEmpty: Bool { isKnown && steps.isEmpty }

    // MARK: Making

    /// Puts a value into an object or, before the element with an index, into an array.
    ///
    /// - Parameter path: The names and indices that lead from the whole value to the place.
    public mutating func add(_ value: some Encodable, at path: String...) { append(.add, path, encoding: value) }

    /// Replaces a value; without a path, the whole.
    public mutating func replace(_ value: some Encodable, at path: String...) {
        append(.replace, path, encoding: value)
    }

    /// Removes a member, or an element of an array.
    public mutating func remove(at path: String...) { append(.remove, path) }

    /// Removes a value at one place and puts it in at another, as it is called when the value has been removed.
    public mutating func move(from: String..., to path: String...) { append(.move, path, from: from) }

    package mutating func add(_ value: some Encodable, atPath path: [String]) { append(.add, path, encoding: value) }
    package mutating func replace(_ value: some Encodable, atPath path: [String]) {
        append(.replace, path, encoding: value)
    }
    package mutating func remove(atPath path: [String]) { append(.remove, path) }

    /// Appends the changes of a part, which is a member of this value. Without changes, none are known of the whole.
    public mutating func append(_ part: StateChanges?, at member: String) {
        guard isKnown, let part, part.isKnown, steps.count + part.steps.count <= Self.mostOperations else {
            return forget()
        }
        start.append(part.start)
        end.append(part.end)
        let member = JSONPointer.Token(member)
        let offset = bytes.count
        bytes += part.bytes
        for var step in part.steps {
            step.path = [member] + step.path[part.depth...]
            step.from = step.from.map { [member] + $0[part.depth...] }
            step.value = step.value.lowerBound + offset..<step.value.upperBound + offset
            steps.append(step)
        }
    }

    /// Throws when something changed that no operation tells.
    func checkIsKnown() throws {
        guard isKnown else { throw StateChangesError("not all of the changes are known") }
    }

    /// There are changes that cannot be told.
    mutating func forget() {
        isKnown = false
        steps = []
        bytes = []
    }

    private mutating func append(_ kind: Operation.Kind, _ path: [String], encoding value: some Encodable) {
        guard isKnown else { return }
        let offset = bytes.count
        do {
            var buffer = ByteBuffer()
            try (Self.coder ?? ValueCoder()).encode(value, into: &buffer)
            bytes.append(contentsOf: buffer.bytes)
        } catch {
            // The error will be that of the whole value, which is sent now.
            return forget()
        }
        append(kind, path, value: offset..<bytes.count)
    }

    private mutating func append(
        _ kind: Operation.Kind, _ path: [String], from: [String]? = nil, value: Range<Int> = 0..<0
    ) {
        guard isKnown else { return }
        guard steps.count < Self.mostOperations else { return forget() }
        steps.append(
            Step(
                kind: kind, path: path.map { JSONPointer.Token($0) }, from: from?.map { JSONPointer.Token($0) },
                value: value))
    }
}

/// Changes that do not fit the value, or are not what changes may be.
public struct StateChangesError: Error, Sendable, CustomStringConvertible {
    /// What is wrong, and with which operation.
    public let message: String

    /// - Parameter message: what is wrong, and with which operation; for a ``DeltaState`` of your own.
    public init(_ message: String) { self.message = message }

    public var description: String { message }
}
