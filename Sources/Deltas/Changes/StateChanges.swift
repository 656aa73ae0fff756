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
        var path: Path
        var from: Path?
        var value: Range<Int>
    }

    /// The way to a place: names, and where that is an element of an array that notes its own changes, an index behind them.
    struct Path: Sendable {
        var names: [JSONPointer.Token] = []
        /// Negative for none.
        var index = -1

        var count: Int { names.count + (index < 0 ? 0 : 1) }

        subscript(place: Int) -> JSONPointer.Token {
            place < names.count ? names[place] : JSONPointer.Token(String(index))
        }

        /// What is left behind so many, with a name before it.
        func below(_ name: [JSONPointer.Token], from depth: Int) -> Path {
            // Mostly all that was there is an index: the one name is shared then.
            Path(names: depth < names.count ? name + names[depth...] : name, index: depth < count ? index : -1)
        }
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
    @usableFromInline var start = ChangeMark.none
    @usableFromInline var end = ChangeMark.none

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
        make { $0.append(kind, Path(path), value) }
    }

    private mutating func append(_ kind: Operation.Kind, _ path: [String], from: [String]? = nil) {
        make { $0.append(kind, Path(path), from: from.map { Path($0) }) }
    }

    private mutating func make(_ body: (inout ChangeWriter) -> Void) {
        var writer = writer(of: 1)
        body(&writer)
        take(writer)
    }

    /// What makes some more changes, about so many.
    @usableFromInline
    func writer(of count: Int) -> ChangeWriter { ChangeWriter(behind: steps.count, bytes.count, count) }

    /// Takes what was written.
    @usableFromInline
    mutating func take(_ writer: borrowing ChangeWriter) {
        guard isKnown else { return }
        guard writer.isKnown else { return forget() }
        steps += writer.steps
        bytes.append(contentsOf: writer.values.bytes)
    }
}

/// Makes changes one after the other: all of their values are encoded into one buffer.
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

    /// Something changed that cannot be told.
    @usableFromInline
    mutating func forget() { isKnown = false }

    /// Instead of the whole.
    @usableFromInline
    mutating func append(replacement value: some Encodable) { append(.replace, StateChanges.Path(), value) }

    mutating func append(_ kind: StateChanges.Operation.Kind, _ path: StateChanges.Path, _ value: some Encodable) {
        guard isKnown else { return }
        let start = values.count
        do {
            try coder.encode(value, into: &values)
        } catch {
            // The error will be that of the whole value, which is sent now.
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
        guard stepsBefore + steps.count < StateChanges.mostOperations else {
            isKnown = false
            return
        }
        steps.append(step)
    }
}

extension StateChanges.Path {
    init(_ names: [String]) { self.init(names: names.map { JSONPointer.Token($0) }) }
}

/// Changes that do not fit the value, or are not what changes may be.
public struct StateChangesError: Error, Sendable, CustomStringConvertible {
    /// What is wrong, and with which operation.
    public let message: String

    /// - Parameter message: what is wrong, and with which operation; for a ``DeltaState`` of your own.
    public init(_ message: String) { self.message = message }

    public var description: String { message }
}
