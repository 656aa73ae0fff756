// Exported as a whole for `JSONValue`, as by TrebuchetActors.
@_exported public import TrebuchetWire

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

// trebuchet: TypeScript = { id: string; fields: { [name: string]: unknown }; creator?: string; created: number; revision: number; createdAt: number; updatedAt: number; expiresAt?: number }
/// A document of a collection.
public struct Document: Codable, Sendable, Identifiable {
    @usableFromInline var contents: DocumentBuffer

    /// The identifier, chosen by the creator and unique in the collection.
    public var id: DocumentID { contents.withID { DocumentID(String(decoding: $0, as: UTF8.self)) } }
    /// The content; null is the same as a missing field.
    public package(set) var fields: JSONObject {
        get { contents.fields }
        set { contents = contents.withMembers { DocumentBuffer(newValue, $0) } }
    }
    /// The id of the principal that created it; nil for a caller that was not signed in.
    public var creator: String? { contents.withMembers { $0.creator.map { String(decoding: $0, as: UTF8.self) } } }
    /// The number of the write that created it. Queries without an order sort by it.
    public var creationRevision: Int { contents.created }
    /// The number of the last write to it. Each collection counts its writes.
    public package(set) var revision: Int {
        get { contents.revision }
        set { contents.revision = newValue }
    }
    /// The time of its creation by the server's clock, which never goes backwards within a collection; nil for a document from a
    /// server version that did not store it.
    public var createdAt: Date? { createdMilliseconds == 0 ? nil : Self.date(createdMilliseconds) }
    /// The time of the last write, as ``createdAt``.
    public var updatedAt: Date? { updatedMilliseconds == 0 ? nil : Self.date(updatedMilliseconds) }
    /// The time from which it no longer exists; nil for no limit.
    public var expiresAt: Date? { expiryMilliseconds.map { Self.date($0) } }
    /// `createdAt` in milliseconds since 1970; 0 for nil.
    package var createdMilliseconds: Int { contents.createdAt }
    /// `updatedAt` in milliseconds since 1970; 0 for nil.
    package var updatedMilliseconds: Int {
        get { contents.updatedAt }
        set { contents.updatedAt = newValue }
    }
    /// `expiresAt` in milliseconds since 1970.
    package var expiryMilliseconds: Int? {
        get { contents.hasExpiry ? contents.withMembers { $0.expiresAt } : nil }
        set { change { $0.expiresAt = newValue } }
    }

    private static func date(_ milliseconds: Int) -> Date {
        Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
    }

    /// Distinguishes the creator's host from others within the collection. It is stored, and never sent.
    package var origin: UInt32? {
        get { contents.withMembers { $0.origin } }
        set { change { $0.origin = newValue } }
    }

    private mutating func change(_ body: (inout DocumentBuffer.Members) -> Void) {
        let fields = contents.fields
        contents = contents.withMembers { members in
            var members = members
            body(&members)
            return DocumentBuffer(fields, members)
        }
    }

    private enum CodingKeys: CodingKey {
        case id, fields, creator, created, revision, createdAt, updatedAt, expiresAt
    }

    /// Creates a document for tests of rules. Fields that are null are omitted.
    public init(id: DocumentID, fields: JSONObject, creator: String? = nil) {
        self.init(id: id, fields: fields, creator: creator, created: 0)
    }

    /// - Parameters:
    ///   - created: The number of the write that created it.
    ///   - createdAt: Milliseconds since 1970, as for the other times.
    @_disfavoredOverload
    package init(
        id: DocumentID, fields: JSONObject, creator: String? = nil, created: Int = 0, revision: Int = 0,
        createdAt: Int = 0, updatedAt: Int = 0, expiresAt: Int? = nil
    ) {
        contents = id.text.withBytes { id in
            (creator ?? "").withBytes { name in
                DocumentBuffer(
                    fields.withoutNulls,
                    DocumentBuffer.Members(
                        id: id, creator: creator == nil ? nil : name, created: created, revision: revision,
                        createdAt: createdAt, updatedAt: updatedAt, expiresAt: expiresAt))
            }
        }
    }

    init(_ contents: DocumentBuffer) { self.contents = contents }

    public init(from decoder: any Decoder) throws {
        if let direct = try Self.readDirectly(from: decoder) {
            self = direct
            return
        }
        let members = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            id: try members.decode(DocumentID.self, forKey: .id),
            fields: try members.decode(JSONObject.self, forKey: .fields),
            creator: try members.decodeIfPresent(String.self, forKey: .creator),
            created: try members.decode(Int.self, forKey: .created),
            revision: try members.decode(Int.self, forKey: .revision),
            createdAt: try members.decodeIfPresent(Int.self, forKey: .createdAt) ?? 0,
            updatedAt: try members.decodeIfPresent(Int.self, forKey: .updatedAt) ?? 0,
            expiresAt: try members.decodeIfPresent(Int.self, forKey: .expiresAt))
    }

    public func encode(to encoder: any Encoder) throws {
        if try writeDirectly(to: encoder) { return }
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(id, forKey: .id)
        try members.encode(fields, forKey: .fields)
        try members.encodeIfPresent(creator, forKey: .creator)
        try members.encode(creationRevision, forKey: .created)
        try members.encode(revision, forKey: .revision)
        try members.encode(createdMilliseconds, forKey: .createdAt)
        try members.encode(updatedMilliseconds, forKey: .updatedAt)
        try members.encodeIfPresent(expiryMilliseconds, forKey: .expiresAt)
    }

    /// The JSON of the fields.
    public var value: JSONValue { .object(fields) }

    /// The number of bytes of JSON of its id and its fields.
    package var byteCount: Int { withID { JSONString.byteCount($0) } + fields.byteCount }

    /// Calls `body` with the id's bytes, without creating a string.
    @inlinable @inline(__always)
    package func withID<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try contents.withID(body)
    }

    /// Calls `body` with all members except the fields, whose texts are valid during the call.
    @inlinable
    package func withMembers<Result>(_ body: (DocumentBuffer.Members) throws -> Result) rethrows -> Result {
        try contents.withMembers(body)
    }

    /// Gives a changed document the numbers and the time of its final write.
    ///
    /// - Parameter isCreated: whether that write has created it.
    package mutating func renumber(by offset: Int, at time: Int, isCreated: Bool) {
        if isCreated {
            contents.created += offset
            contents.createdAt = time
        }
        revision += offset
        updatedMilliseconds = time
    }

    /// Returns whether both are copies of one document without changes.
    package func isSame(as other: Document) -> Bool { contents.isSame(as: other.contents) }

    package func isExpired(at time: Int) -> Bool { expiryMilliseconds.map { $0 <= time } ?? false }

    /// Returns the document id for an element's id in JSON; nil when that is no string and no integer.
    package static func id(_ value: JSONValue?) -> DocumentID? {
        switch value {
        case .string(let text): DocumentID(text)
        case .integer(let number): DocumentID(String(number))
        default: nil
        }
    }
}

extension Document: Hashable {
    public static func == (one: Self, other: Self) -> Bool { one.contents == other.contents }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(id)
        hasher.combine(revision)
        hasher.combine(fields)
    }
}

extension String {
    /// Calls `body` with the UTF-8 bytes.
    fileprivate func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        var text = self
        return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }
}
