#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// A document in one buffer: its fields as a `JSONObject`, and a trailer with its other members. So a document takes one
/// allocation, and little more memory than its JSON.
///
/// The trailer ends with a part of fixed size: four numbers, and the sizes of the id and of the trailer. Before it are, from its
/// end: the id, the expiry, the origin and the creator. Flags in the header of the buffer tell which of these exist.
@usableFromInline
package struct DocumentBuffer: Sendable {
    /// The members of a document except its fields.
    @usableFromInline
    package struct Members {
        package let id: UnsafeRawBufferPointer
        package let creator: UnsafeRawBufferPointer?
        var created = 0
        var revision = 0
        var createdAt = 0
        var updatedAt = 0
        var expiresAt: Int?
        var origin: UInt32?

        fileprivate var flags: UInt8 {
            (creator == nil ? 0 : DocumentBuffer.creatorFlag) | (expiresAt == nil ? 0 : DocumentBuffer.expiryFlag)
                | (origin == nil ? 0 : DocumentBuffer.originFlag)
        }

        /// The number of bytes of the trailer.
        fileprivate var byteCount: Int {
            DocumentBuffer.fixedCount + id.count + (creator?.count ?? 0) + (expiresAt == nil ? 0 : 8)
                + (origin == nil ? 0 : 4)
        }
    }

    private static let (creatorFlag, expiryFlag, originFlag): (UInt8, UInt8, UInt8) = (1, 2, 4)
    private static let fixedCount = 40
    /// The places of the numbers, from the end.
    private static let (createdPlace, revisionPlace, createdAtPlace, updatedAtPlace, idCountPlace) = (40, 32, 24, 16, 8)

    @usableFromInline var bytes: [UInt8]

    /// Creates a buffer from a canonical text with its index.
    init(_ text: UnsafeRawBufferPointer, _ index: JSONObjectIndex, _ members: Members) {
        let start = index.byteCount(text)
        let end = start + members.byteCount
        bytes = [UInt8](unsafeUninitializedCapacity: end) { target, count in
            count = end
            let target = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(target)[..<end])
            index.write(text, to: target)
            Self.write(members, to: target)
        }
    }

    /// Creates a buffer with the fields of an object.
    init(_ fields: JSONObject, _ members: Members) {
        bytes = fields.withParts { parts in
            fields.buffer.withUnsafeBytes { buffer in
                let head = UnsafeRawBufferPointer(rebasing: buffer[..<parts.textEnd(in: buffer)])
                let end = head.count + members.byteCount
                return [UInt8](unsafeUninitializedCapacity: end) { target, count in
                    count = end
                    let target = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(target)[..<end])
                    target.copyMemory(from: head)
                    Self.write(members, to: target)
                }
            }
        }
    }

    /// Writes a trailer to the end of a buffer, and its flags to the header.
    private static func write(_ members: Members, to target: UnsafeMutableRawBufferPointer) {
        let base = target.baseAddress.unsafelyUnwrapped
        var at = target.count - fixedCount
        func put(_ bytes: UnsafeRawBufferPointer) {
            at -= bytes.count
            if let source = bytes.baseAddress { memcpy(base + at, source, bytes.count) }
        }
        put(members.id)
        if let expiry = members.expiresAt { withUnsafeBytes(of: Int64(expiry)) { put($0) } }
        if let origin = members.origin { withUnsafeBytes(of: origin) { put($0) } }
        if let creator = members.creator { put(creator) }
        func store(_ number: Int, _ place: Int) {
            base.storeBytes(of: Int64(number), toByteOffset: target.count - place, as: Int64.self)
        }
        store(members.created, createdPlace)
        store(members.revision, revisionPlace)
        store(members.createdAt, createdAtPlace)
        store(members.updatedAt, updatedAtPlace)
        base.storeBytes(
            of: UInt32(members.id.count), toByteOffset: target.count - idCountPlace, as: UInt32.self)
        base.storeBytes(of: UInt32(members.byteCount), toByteOffset: target.count - 4, as: UInt32.self)
        let flags = base.load(fromByteOffset: JSONObjectParts.flagsPlace, as: UInt8.self)
        base.storeBytes(of: flags | JSONObjectParts.trailer, toByteOffset: JSONObjectParts.flagsPlace, as: UInt8.self)
        base.storeBytes(of: members.flags, toByteOffset: JSONObjectParts.trailerFlagsPlace, as: UInt8.self)
    }

    /// The fields, which share the buffer.
    var fields: JSONObject { JSONObject(buffer: bytes) }

    /// Calls `body` with the members, whose texts are valid during the call.
    @inlinable @inline(__always)
    package func withMembers<Result>(_ body: (Members) throws -> Result) rethrows -> Result {
        try bytes.withUnsafeBytes { try body(Self.members($0)) }
    }

    @usableFromInline
    static func members(_ buffer: UnsafeRawBufferPointer) -> Members {
        let flags = buffer[JSONObjectParts.trailerFlagsPlace]
        let id = self.id(buffer)
        var at = buffer.count - fixedCount - id.count
        var (expiry, origin, creator) = (nil as Int?, nil as UInt32?, nil as UnsafeRawBufferPointer?)
        if flags & expiryFlag != 0 {
            at -= 8
            expiry = Int(buffer.loadUnaligned(fromByteOffset: at, as: Int64.self))
        }
        if flags & originFlag != 0 {
            at -= 4
            origin = buffer.loadUnaligned(fromByteOffset: at, as: UInt32.self)
        }
        if flags & creatorFlag != 0 {
            creator = UnsafeRawBufferPointer(
                rebasing: buffer[buffer.count - JSONObjectParts.trailerCount(buffer)..<at])
        }
        return Members(
            id: id, creator: creator, created: number(createdPlace, buffer), revision: number(revisionPlace, buffer),
            createdAt: number(createdAtPlace, buffer), updatedAt: number(updatedAtPlace, buffer), expiresAt: expiry,
            origin: origin)
    }

    @inline(__always)
    private static func number(_ place: Int, _ buffer: UnsafeRawBufferPointer) -> Int {
        Int(buffer.loadUnaligned(fromByteOffset: buffer.count - place, as: Int64.self))
    }

    @inline(__always) @usableFromInline
    static func id(_ buffer: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let count = Int(buffer.loadUnaligned(fromByteOffset: buffer.count - idCountPlace, as: UInt32.self))
        let end = buffer.count - fixedCount
        return UnsafeRawBufferPointer(rebasing: buffer[end - count..<end])
    }

    /// Calls `body` with the id's bytes.
    @inlinable @inline(__always)
    package func withID<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try bytes.withUnsafeBytes { try body(Self.id($0)) }
    }

    // MARK: Numbers

    var created: Int {
        get { self[Self.createdPlace] }
        set { self[Self.createdPlace] = newValue }
    }
    var createdAt: Int {
        get { self[Self.createdAtPlace] }
        set { self[Self.createdAtPlace] = newValue }
    }
    var revision: Int {
        get { self[Self.revisionPlace] }
        set { self[Self.revisionPlace] = newValue }
    }
    var updatedAt: Int {
        get { self[Self.updatedAtPlace] }
        set { self[Self.updatedAtPlace] = newValue }
    }
    var hasExpiry: Bool { bytes.withUnsafeBytes { $0[JSONObjectParts.trailerFlagsPlace] & Self.expiryFlag != 0 } }

    /// The number at a place, counted from the end.
    private subscript(place: Int) -> Int {
        get { bytes.withUnsafeBytes { Self.number(place, $0) } }
        set {
            bytes.withUnsafeMutableBytes {
                $0.storeBytes(of: Int64(newValue), toByteOffset: $0.count - place, as: Int64.self)
            }
        }
    }

    /// Returns whether both are one buffer.
    func isSame(as other: DocumentBuffer) -> Bool {
        bytes.withUnsafeBytes { one in other.bytes.withUnsafeBytes { one.baseAddress == $0.baseAddress } }
    }
}

extension DocumentBuffer: Equatable {
    @usableFromInline package static func == (one: Self, other: Self) -> Bool {
        if one.isSame(as: other) { return true }
        return one.bytes.withUnsafeBytes { left in
            other.bytes.withUnsafeBytes { right in
                let place = JSONObjectParts.trailerFlagsPlace
                guard left[place] == right[place], trailer(left).hasSameBytes(trailer(right)) else { return false }
                return one.fields == other.fields
            }
        }
    }

    private static func trailer(_ buffer: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: buffer[(buffer.count - JSONObjectParts.trailerCount(buffer))...])
    }
}
