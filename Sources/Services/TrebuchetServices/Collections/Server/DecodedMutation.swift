internal import Bytes
internal import Trebuchet
internal import TrebuchetWire

/// A mutation of a client, decoded after its rate and size were checked.
enum DecodedMutation {
    case mutation(DocumentMutation)
    /// The mutation is invalid.
    case refused(number: Int, CollectionError)
    /// The mutation has waited too long for memory.
    case exceeding(DocumentMutation, CollectionError)

    /// False when it only deletes documents.
    var mayGrow: Bool {
        guard case .mutation(let mutation) = self else { return false }
        return mutation.writes.contains { $0.command.action != .delete }
    }

    var number: Int {
        switch self {
        case .mutation(let mutation), .exceeding(let mutation, _): mutation.number
        case .refused(let number, _): number
        }
    }
}

/// Decodes the mutations of a call within the connection's rate, in several parts; mutations above the rate are not decoded.
struct MutationDecoder {
    private let mutations: [EncodedJSON]
    private let limits: CollectionLimits
    /// The index of the mutation to decode next.
    private var next = 0
    private(set) var decoded: [DecodedMutation] = []

    init(_ mutations: [EncodedJSON], _ limits: CollectionLimits) { (self.mutations, self.limits) = (mutations, limits) }

    /// Decodes mutations until the time is up, but at least one; returns true when all within the rate are decoded.
    ///
    /// - Parameter take: takes writes from the rate; otherwise returns the time to wait in milliseconds.
    mutating func resume(
        _ slice: ScanSlice, take: (_ writes: Int) -> Int?
    ) throws(CollectionError) -> Bool {
        var text = ByteBuffer()
        while next < mutations.count {
            guard try decode(mutations[next], &text, take) else {
                next = mutations.count
                break
            }
            next += 1
            if slice.isOver { break }
        }
        return next == mutations.count
    }

    /// Returns false when the mutation exceeds the rate, and others were decoded.
    private mutating func decode(
        _ encoded: EncodedJSON, _ text: inout ByteBuffer, _ take: (_ writes: Int) -> Int?
    ) throws(CollectionError) -> Bool {
        if let wait = take(1) {
            guard !decoded.isEmpty else { throw .rateLimited(retryAfterMilliseconds: wait) }
            return false
        }
        let limit = max(CollectionLimits.mutationBytes, 2 * limits.documentBytes)
        guard encoded.byteCount <= limit else {
            throw .documentTooLarge(id: "", bytes: encoded.byteCount, limit: limit)
        }
        guard encoded.depth <= CollectionLimits.maximumDepth + DocumentMutation.depth else {
            throw .tooDeep(limit: CollectionLimits.maximumDepth)
        }
        text.removeAll()
        do {
            try encoded.appendMutation(to: &text)
        } catch {
            let error = CollectionError.invalidDocument("\(error)")
            guard let number = encoded.mutationNumber else { throw error }
            decoded.append(.refused(number: number, error))
            return true
        }
        let (number, writes) = try DocumentMutation.read(text.bytes)
        let mutation: DocumentMutation
        switch writes {
        case .success(let writes): mutation = DocumentMutation(number: number, writes: writes)
        case .failure(let error):
            decoded.append(.refused(number: number, error))
            return true
        }
        // Each command counts as a write.
        if mutation.writes.count > 1, let wait = take(mutation.writes.count - 1) {
            guard !decoded.isEmpty else { throw .rateLimited(retryAfterMilliseconds: wait) }
            return false
        }
        decoded.append(.mutation(mutation))
        return true
    }
}

extension EncodedJSON {
    /// The number of a mutation whose other members may be invalid; nil without one.
    fileprivate var mutationNumber: Int? {
        bytes.withUnsafeBytes { bytes in
            var json = JSONCursor(bytes)
            var isFirst = true
            guard json.consume(UInt8(ascii: "{")) else { return nil }
            while let name = try? json.name(&isFirst), let value = try? json.value() {
                if json.text(name) == "number" {
                    return JSONNumber.int(json.bytes(value)).flatMap { $0 > 0 ? $0 : nil }
                }
            }
            return nil
        }
    }

    /// Appends the text of a mutation. The members of the mutation and of its commands keep their order; values are canonical.
    fileprivate func appendMutation(to text: inout ByteBuffer) throws {
        try bytes.withUnsafeBytes { bytes in
            var json = JSONCursor(bytes)
            guard json.peek() == UInt8(ascii: "{") else { return try CanonicalJSON.append(&json, depth: 0, to: &text) }
            try json.expect(UInt8(ascii: "{"))
            text.append(UInt8(ascii: "{"))
            let start = text.count
            var isFirst = true
            while let name = try json.name(&isFirst) {
                if text.count > start { text.append(UInt8(ascii: ",")) }
                let nameStart = text.count
                CanonicalJSON.appendString(name, of: json, to: &text)
                // A command is an object in another one; several are in an array.
                let isList = text.bytes[nameStart...].elementsEqual(#""commands""#.utf8)
                text.append(UInt8(ascii: ":"))
                try CanonicalJSON.append(&json, depth: 1, unsortedLevels: isList ? 3 : 2, to: &text)
            }
            text.append(UInt8(ascii: "}"))
        }
    }
}
