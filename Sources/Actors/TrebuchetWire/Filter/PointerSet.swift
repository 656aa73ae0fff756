/// A set of JSON pointers (RFC 6901) whose targets are located in one pass over a text.
package struct PointerSet: Sendable {
    /// A node of the tree of tokens.
    private struct Step: Sendable {
        /// Whether a pointer ends here.
        var isWanted = false
        var members: [(name: JSONPointer.Token, next: Int)] = []
        /// The members by name, used if there are more than a few.
        var membersByName: [[UInt8]: Int] = [:]
        var elements: [Int: Int] = [:]

        var isLast: Bool { members.isEmpty }

        func next(_ name: JSONName) -> Int? {
            guard members.count > PointerSet.fewMembers else { return members.first { $0.name.names(name) }?.next }
            return membersByName[name.content]
        }
    }

    private static let fewMembers = 8

    /// The nodes; the first is the whole text.
    private var steps = [Step()]
    /// The node at which each pointer ends.
    private var ends: [String: Int] = [:]

    /// Creates a set. Invalid pointers have no target.
    package init(_ pointers: some Sequence<String>) {
        for pointer in pointers where ends[pointer] == nil {
            if let tokens = JSONPointer(pointer)?.tokens { ends[pointer] = insert(tokens) }
        }
    }

    private mutating func insert(_ tokens: [JSONPointer.Token]) -> Int {
        var at = 0
        for token in tokens {
            if let next = steps[at].members.count > Self.fewMembers
                ? steps[at].membersByName[token.bytes] : steps[at].members.first(where: { $0.name == token })?.next
            {
                at = next
                continue
            }
            steps.append(Step())
            let next = steps.count - 1
            steps[at].members.append((token, next))
            steps[at].membersByName[token.bytes] = next
            if let index = token.index { steps[at].elements[index] = next }
            at = next
        }
        steps[at].isWanted = true
        return at
    }

    var pointers: Dictionary<String, Int>.Keys { ends.keys }

    /// Returns the range of each pointer's target; nil if it does not exist, and for all if the text is not JSON. As with
    /// `JSONPointer.lookup`, a member with a duplicate name is not found.
    package func lookup(in text: UnsafeRawBufferPointer) -> [String: Range<Int>?] {
        var ranges = [Range<Int>?](repeating: nil, count: steps.count)
        var cursor = JSONCursor(text)
        do throws(EnvelopeError) {
            try find(0, &cursor, 0, &ranges)
            try cursor.expectEnd()
        } catch {
            return ends.mapValues { _ in nil }
        }
        return ends.mapValues { ranges[$0] }
    }

    /// Moves the cursor past the value that belongs to a node.
    private func find(
        _ step: Int, _ cursor: inout JSONCursor, _ depth: Int, _ ranges: inout [Range<Int>?]
    ) throws(EnvelopeError) {
        let first = cursor.peek()
        let start = cursor.at
        if steps[step].isLast || first != 0x7B && first != 0x5B {
            _ = try cursor.value(depth: depth)
        } else {
            guard depth < JSONCursor.maximumDepth else { throw cursor.tooDeep() }
            cursor.at += 1
            if first == 0x7B {
                try findMembers(step, &cursor, depth, &ranges)
            } else {
                try findElements(step, &cursor, depth, &ranges)
            }
        }
        if steps[step].isWanted { ranges[step] = start..<cursor.at }
    }

    private func findMembers(
        _ step: Int, _ cursor: inout JSONCursor, _ depth: Int, _ ranges: inout [Range<Int>?]
    ) throws(EnvelopeError) {
        var seen: Set<Int> = []
        var isFirst = true
        while let name = try cursor.name(&isFirst) {
            guard let next = steps[step].next(JSONName(name, in: cursor)) else {
                _ = try cursor.value(depth: depth + 1)
                continue
            }
            if seen.insert(next).inserted {
                try find(next, &cursor, depth + 1, &ranges)
            } else {
                // With a duplicate name the target is ambiguous.
                _ = try cursor.value(depth: depth + 1)
                remove(next, &ranges)
            }
        }
    }

    private func remove(_ step: Int, _ ranges: inout [Range<Int>?]) {
        ranges[step] = nil
        for member in steps[step].members { remove(member.next, &ranges) }
    }

    private func findElements(
        _ step: Int, _ cursor: inout JSONCursor, _ depth: Int, _ ranges: inout [Range<Int>?]
    ) throws(EnvelopeError) {
        var index = 0
        var isFirst = true
        while try cursor.hasElement(&isFirst) {
            if let next = steps[step].elements[index] {
                try find(next, &cursor, depth + 1, &ranges)
            } else {
                _ = try cursor.value(depth: depth + 1)
            }
            index += 1
        }
    }
}
