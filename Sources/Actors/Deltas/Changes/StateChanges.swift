internal import Bytes
internal import TrebuchetWire

/// Changes of a value, as operations on its JSON (RFC 6902).
///
/// A state creates them in ``DeltaState/takeChanges()`` and applies them in ``DeltaState/apply(_:)``. Values are encoded and
/// decoded in the same way as whole states. A patch has at most 65,536 operations; with more, the changes are unknown.
public struct StateChanges: Sendable {
    /// An operation that references its value by position, so that parts of many changes share their bytes.
    struct Step: Sendable {
        let kind: Operation.Kind
        var path: Path
        var from: Path?
        var value: Range<Int>
    }

    /// The path to a target: names, followed by an index if the target is an element of an array that tracks its changes.
    struct Path: Sendable {
        var names: [JSONPointer.Token] = []
        /// The index, or a negative number for none.
        var index = -1

        var count: Int { names.count + (index < 0 ? 0 : 1) }

        subscript(position: Int) -> JSONPointer.Token {
            position < names.count ? names[position] : JSONPointer.Token(String(index))
        }

        /// Returns the path without its first `depth` components, behind a name.
        func below(_ name: [JSONPointer.Token], from depth: Int) -> Path {
            // Usually only an index remains; then the array with the one name is shared.
            Path(names: depth < names.count ? name + names[depth...] : name, index: depth < count ? index : -1)
        }
    }

    /// The maximum number of operations.
    static let maximumOperations = 65_536

    /// The coder for values while the changes of a streamed state are taken or applied.
    ///
    /// A coder belongs to one thread; the calls during which it is bound do not suspend.
    @TaskLocal static var coder: ValueCoder?

    var steps: ArraySlice<Step> = []
    /// The encoded values.
    var bytes: [UInt8] = []
    /// The number of leading path names that lead to the value that these changes belong to.
    var depth = 0
    /// False after a change that operations cannot describe: the whole value must be sent.
    public private(set) var isKnown = true
    /// The marks of the versions before and after the changes.
    @usableFromInline var start = ChangeStamp.none
    @usableFromInline var end = ChangeStamp.none

    /// Creates an empty list of changes.
    public init() {}

    /// True if nothing changed.
    public var isEmpty: Bool { isKnown && steps.isEmpty }

    // MARK: Making

    /// Adds a value to an object or, before the element with an index, to an array.
    ///
    /// - Parameter path: The names and indices that lead from the whole value to the target.
    public mutating func add(_ value: some Encodable, at path: String...) { append(.add, path, encoding: value) }

    /// Replaces a value, or without a path the whole value.
    public mutating func replace(_ value: some Encodable, at path: String...) {
        append(.replace, path, encoding: value)
    }

    /// Removes a member, or an element of an array.
    public mutating func remove(at path: String...) { append(.remove, path) }

    /// Moves a value. The target path applies to the state after the removal.
    public mutating func move(from: String..., to path: String...) { append(.move, path, from: from) }

    package mutating func add(_ value: some Encodable, atPath path: [String]) { append(.add, path, encoding: value) }
    package mutating func replace(_ value: some Encodable, atPath path: [String]) {
        append(.replace, path, encoding: value)
    }
    package mutating func remove(atPath path: [String]) { append(.remove, path) }

    /// Appends the changes of a member of this value. If they are nil, the changes of the whole are unknown.
    public mutating func append(_ part: StateChanges?, at member: String) {
        guard isKnown, let part, part.isKnown, steps.count + part.steps.count <= Self.maximumOperations else {
            return discard()
        }
        start.append(part.start)
        end.append(part.end)
        let member = [JSONPointer.Token(member)]
        let offset = bytes.count
        bytes += part.bytes
        for var step in part.steps {
            step.path = step.path.below(member, from: part.depth)
            step.from = step.from?.below(member, from: part.depth)
            step.value = step.value.lowerBound + offset..<step.value.upperBound + offset
            steps.append(step)
        }
    }

    /// Throws if there are changes that operations cannot describe.
    func checkIsKnown() throws {
        guard isKnown else { throw StateChangesError("the recorded changes are incomplete") }
    }

    /// Marks the changes as unknown.
    mutating func discard() {
        isKnown = false
        steps = []
        bytes = []
    }

    private mutating func append(_ kind: Operation.Kind, _ path: [String], encoding value: some Encodable) {
        make { $0.append(kind, Path(path), value) }
    }

    private mutating func append(_ kind: Operation.Kind, _ path: [String], from: [String]? = nil) {
        make { $0.append(kind, Path(path), from: from.map { Path($0) }) }
    }

    private mutating func make(_ body: (inout ChangeWriter) -> Void) {
        var writer = writer(of: 1)
        body(&writer)
        appendOperations(of: writer)
    }

    /// Returns a writer for about `count` more operations.
    @usableFromInline
    func writer(of count: Int) -> ChangeWriter { ChangeWriter(behind: steps.count, bytes.count, count) }

    /// Appends the operations of a writer.
    @usableFromInline
    mutating func appendOperations(of writer: borrowing ChangeWriter) {
        guard isKnown else { return }
        guard writer.isKnown else { return discard() }
        steps += writer.steps
        bytes.append(contentsOf: writer.values.bytes)
    }
}

/// A writer for a series of operations that encodes all their values into one buffer.
@usableFromInline
struct ChangeWriter: ~Copyable {
    private(set) var steps: [StateChanges.Step] = []
    private(set) var values = ByteBuffer()
    private(set) var isKnown = true
    private let coder = StateChanges.coder ?? ValueCoder()
    private let stepsBefore: Int
    private let bytesBefore: Int

    init(behind steps: Int, _ bytes: Int, _ count: Int) {
        stepsBefore = steps
        bytesBefore = bytes
        self.steps.reserveCapacity(count)
    }

    @usableFromInline
    mutating func append(_ kind: StateChanges.Operation.Kind, _ index: Int, _ value: some Encodable) {
        append(kind, StateChanges.Path(index: index), value)
    }

    @usableFromInline
    mutating func append(_ kind: StateChanges.Operation.Kind, _ index: Int, from: Int? = nil) {
        append(kind, StateChanges.Path(index: index), from: from.map { StateChanges.Path(index: $0) })
    }

    /// Marks the changes as unknown.
    @usableFromInline
    mutating func discard() { isKnown = false }

    /// Appends a replacement of the whole value.
    @usableFromInline
    mutating func append(replacement value: some Encodable) { append(.replace, StateChanges.Path(), value) }

    mutating func append(_ kind: StateChanges.Operation.Kind, _ path: StateChanges.Path, _ value: some Encodable) {
        guard isKnown else { return }
        let start = values.count
        do {
            try coder.encode(value, into: &values)
        } catch {
            // Sending the whole value, which follows, reports the same error.
            isKnown = false
            return
        }
        append(.init(kind: kind, path: path, from: nil, value: bytesBefore + start..<bytesBefore + values.count))
    }

    mutating func append(
        _ kind: StateChanges.Operation.Kind, _ path: StateChanges.Path, from: StateChanges.Path? = nil
    ) {
        append(.init(kind: kind, path: path, from: from, value: 0..<0))
    }

    private mutating func append(_ step: StateChanges.Step) {
        guard stepsBefore + steps.count < StateChanges.maximumOperations else {
            isKnown = false
            return
        }
        steps.append(step)
    }
}

extension StateChanges.Path {
    init(_ names: [String]) { self.init(names: names.map { JSONPointer.Token($0) }) }
}

/// An error: changes do not fit the value or are invalid.
public struct StateChangesError: Error, Sendable, CustomStringConvertible {
    /// The problem and the operation that has it.
    public let message: String

    /// Creates the error, for a custom ``DeltaState``.
    ///
    /// - Parameter message: the problem and the operation that has it.
    public init(_ message: String) { self.message = message }

    public var description: String { message }
}
