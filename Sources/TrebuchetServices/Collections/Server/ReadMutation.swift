internal import Trebuchet

/// A mutation that a client has sent, when its rate and its size were looked at.
enum ReadMutation {
    case mutation(DocumentMutation)
    /// It makes no sense.
    case refused(MutationOutcome)

    var targets: [LinkTarget] {
        if case .mutation(let mutation) = self { mutation.writes.compactMap(\.command.target) } else { [] }
    }

    /// Those for which the connection has a write left; what is too much or too large is not looked into.
    ///
    /// - Parameter revision: what one that is refused is answered with.
    static func read(
        _ mutations: [EncodedJSON], of visitor: CollectionVisitor, in name: String, _ limits: CollectionLimits,
        at revision: Int
    ) throws(CollectionError) -> [ReadMutation] {
        var read: [ReadMutation] = []
        for encoded in mutations {
            if let wait = visitor.takeWrites(1, to: name, limits.writesToCollection) {
                guard !read.isEmpty else { throw .rateLimited(retryAfterMilliseconds: wait) }
                break
            }
            let limit = max(CollectionLimits.mutationBytes, 2 * limits.documentBytes)
            guard encoded.byteCount <= limit else {
                throw .documentTooLarge(id: "", bytes: encoded.byteCount, limit: limit)
            }
            guard encoded.depth <= CollectionLimits.deepest + DocumentMutation.depth else {
                throw .tooDeep(limit: CollectionLimits.deepest)
            }
            let value: JSONValue
            do {
                value = try encoded.value()
            } catch {
                throw .invalidDocument("\(error)")
            }
            let number = try DocumentMutation.number(of: value)
            let mutation: DocumentMutation
            do throws(CollectionError) {
                mutation = try DocumentMutation(value)
            } catch {
                read.append(.refused(MutationOutcome(number: number, revision: revision, error: error)))
                continue
            }
            // Each command is a write.
            if mutation.writes.count > 1,
                let wait = visitor.takeWrites(mutation.writes.count - 1, to: name, limits.writesToCollection)
            {
                guard !read.isEmpty else { throw .rateLimited(retryAfterMilliseconds: wait) }
                break
            }
            read.append(.mutation(mutation))
        }
        return read
    }
}
