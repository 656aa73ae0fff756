internal import Bytes
internal import Trebuchet

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
            var text = ByteBuffer()
            do {
                try encoded.appendCanonical(to: &text)
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
