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
    /// - Parameters:
    ///   - revision: what one that is refused is answered with.
    ///   - take: takes writes; else it says how many milliseconds to wait for them.
    static func read(
        _ mutations: [EncodedJSON], _ limits: CollectionLimits, at revision: Int, take: (_ writes: Int) -> Int?
    ) throws(CollectionError) -> [ReadMutation] {
        var read: [ReadMutation] = []
        for encoded in mutations {
            if let wait = take(1) {
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
            if mutation.writes.count > 1, let wait = take(mutation.writes.count - 1) {
                guard !read.isEmpty else { throw .rateLimited(retryAfterMilliseconds: wait) }
                break
            }
            read.append(.mutation(mutation))
        }
        return read
    }
}
