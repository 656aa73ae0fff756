internal import Bytes
internal import Synchronization
internal import TrebuchetWire

/// The text fields that a caller sends beside the arguments of a call or with the start of a stream, such as a request id.
///
///     try await CallMetadata.with(["request-id": id]) { try await todos.addTodo(title: "Milk") }
///
/// A method reads the fields of its call as `CallMetadata.current`; interceptors read and set them. The caller chooses them freely, so
/// they prove nothing about it.
///
/// There are at most 16 fields with at most 4,096 bytes in all, counted as a JSON object. A name has 1 to 64 characters of `a-z`, `0-9`
/// and `-`. A call or stream with other fields fails with `invalidArguments` before it is sent.
public struct CallMetadata: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    /// The values by name.
    public var fields: [String: String]

    /// Creates metadata from values by name. Default: none.
    public init(_ fields: [String: String] = [:]) { self.fields = fields }

    /// Creates metadata from pairs of a name and a value. The last of several values for a name counts.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = Dictionary(elements) { $1 }
    }

    /// The value of a field; nil without the field. Setting nil removes the field.
    public subscript(name: String) -> String? {
        get { fields[name] }
        set { fields[name] = newValue }
    }

    /// A Boolean value that indicates whether there are no fields.
    public var isEmpty: Bool { fields.isEmpty }

    /// Returns the JSON object for a message; nil if there are no fields.
    ///
    /// - Throws: `invalidArguments` if the fields exceed the limits.
    package func encoded() throws(TrebuchetError) -> [UInt8]? {
        guard !fields.isEmpty else { return nil }
        guard fields.count <= MetadataFields.maximumCount else {
            throw TrebuchetError(
                .invalidArguments,
                "the metadata has \(fields.count) fields; the limit is \(MetadataFields.maximumCount)")
        }
        for name in fields.keys where !MetadataFields.isName(name.utf8) {
            throw TrebuchetError(
                .invalidArguments,
                "a name of metadata has 1 to \(MetadataFields.maximumNameBytes) characters of a-z, 0-9 and -, not "
                    + "'\(name.prefix(bytes: 128))'")
        }
        let object = MetadataFields.object(fields)
        guard object.count <= MetadataFields.maximumBytes else {
            throw TrebuchetError(
                .invalidArguments,
                "the metadata has \(object.count) bytes as JSON; the limit is \(MetadataFields.maximumBytes)")
        }
        return object
    }

    // MARK: Current metadata

    /// The metadata of a task.
    private struct Bound: Sendable {
        /// The metadata of the running call.
        var received = CallMetadata()
        /// The metadata of calls that the task makes.
        var sent = CallMetadata()
    }

    @TaskLocal private static var bound: Bound?
    /// Set with the first metadata; a program without metadata skips the lookup.
    private static let isUsed = Atomic<Bool>(false)

    private static func recordUse() {
        if !isUsed.load(ordering: .relaxed) { isUsed.store(true, ordering: .relaxed) }
    }

    private static var present: Bound? { isUsed.load(ordering: .relaxed) ? bound : nil }

    /// The metadata of the running distributed method; empty elsewhere, and for a call without metadata. Tasks of the method inherit it.
    /// Calls that the method makes do not send it, unless it is passed to `with`.
    public static var current: CallMetadata { present?.received ?? CallMetadata() }

    /// The metadata for calls and streams that the current task starts.
    package static var sent: CallMetadata { present?.sent ?? CallMetadata() }

    /// Sends metadata with the calls and streams that start inside `body`. Fields of an outer `with` are sent too; the inner value of a
    /// name counts.
    public static func with<Result>(
        _ metadata: CallMetadata, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Result
    ) async rethrows -> Result {
        recordUse()
        var inner = bound ?? Bound()
        inner.sent.fields.merge(metadata.fields) { $1 }
        return try await $bound.withValue(inner, operation: body, isolation: isolation)
    }

    /// Runs a method whose call has this metadata.
    package static func running<Result>(_ metadata: CallMetadata, _ body: () throws -> Result) rethrows -> Result {
        recordUse()
        return try $bound.withValue(Bound(received: metadata), operation: body)
    }
}

extension Message {
    /// Indicates whether the caller has sent metadata.
    @inline(__always)
    package var hasMetadata: Bool { !envelope.pointee.metadata.isAbsent }

    /// The metadata of the call or stream.
    package var metadata: CallMetadata {
        let range = envelope.pointee.metadata
        return range.isAbsent ? CallMetadata() : CallMetadata(MetadataFields.fields(in: bytes(range)))
    }
}
