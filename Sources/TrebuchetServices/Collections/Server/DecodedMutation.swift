internal import Bytes
internal import Trebuchet
internal import TrebuchetWire

/// A mutation of a client, decoded after its rate and size were checked.
enum DecodedMutation {
    case mutation(DocumentMutation)
    /// The mutation is invalid.
    case refused(MutationOutcome)

    var targets: [LinkTarget] {
        if case .mutation(let mutation) = self { mutation.writes.compactMap(\.command.target) } else { [] }
    }

    /// Decodes the mutations within the connection's rate; larger ones are not decoded.
    ///
    /// - Parameters:
    ///   - revision: the revision in the outcome of an invalid mutation.
    ///   - take: takes writes from the rate; otherwise returns the time to wait in milliseconds.
    static func read(
        _ mutations: [EncodedJSON], _ limits: CollectionLimits, at revision: Int, take: (_ writes: Int) -> Int?
    ) throws(CollectionError) -> [DecodedMutation] {
        var read: [DecodedMutation] = []
        var text = ByteBuffer()
        for encoded in mutations {
            if let wait = take(1) {
                guard !read.isEmpty else { throw .rateLimited(retryAfterMilliseconds: wait) }
                break
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
                throw .invalidDocument("\(error)")
            }
            let number = try DocumentMutation.number(canonical: text.bytes)
            let mutation: DocumentMutation
            do throws(CollectionError) {
                mutation = try DocumentMutation(canonical: text.bytes)
            } catch {
                read.append(.refused(MutationOutcome(number: number, revision: revision, error: error)))
                continue
            }
            // Each command counts as a write.
            if mutation.writes.count > 1, let wait = take(mutation.writes.count - 1) {
                guard !read.isEmpty else { throw .rateLimited(retryAfterMilliseconds: wait) }
                break
            }
            read.append(.mutation(mutation))
        }
        return read
    }
}

extension EncodedJSON {
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
