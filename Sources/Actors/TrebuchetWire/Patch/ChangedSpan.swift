/// The children of one container that contain all differences between two texts.
struct ChangedSpan {
    /// A container that is open at the first difference.
    struct Frame {
        let isObject: Bool
        /// The offset of its bracket from the start of the value.
        let start: Int
        /// The child at or behind which the texts differ: its index, its name, and the offset of its text.
        var index = 0
        var name = JSONName(UnsafeRawBufferPointer(start: nil, count: 0))
        var childStart: Int
    }

    /// A child of the container, with the range of its value.
    struct Child {
        let name: JSONName
        let value: Range<Int>
    }

    /// The containers from the value down to the one with the changes.
    private(set) var frames: [Frame]
    private(set) var oldChildren: [Child] = []
    private(set) var newChildren: [Child] = []
    /// True if these children are the last.
    private(set) var reachesEnd = false
    /// The offset of the container in the new text.
    private let newStart: Int

    var frame: Frame { frames[frames.count - 1] }

    /// The number of bytes of the new container that were read.
    var knownNewCount: Int { (newChildren.last?.value.upperBound ?? newStart + 1) - newStart }

    /// Returns the range of the whole container in the new text.
    func newContainer(in new: UnsafeRawBufferPointer, depth: Int) throws(JSONDifference.Stop) -> Range<Int> {
        var cursor = JSONCursor(new)
        cursor.at = newStart
        guard let value = try? cursor.value(depth: depth) else { throw .notJSON }
        return newStart..<newStart + Int(value.count)
    }

    // MARK: Finding the span

    /// Finds the innermost container with all differences, for two values with known common bytes at both ends.
    static func find(
        _ before: Range<Int>, _ after: Range<Int>, shared: (start: Int, end: Int), depth: Int,
        old: UnsafeRawBufferPointer, new: UnsafeRawBufferPointer
    ) throws(JSONDifference.Stop) -> ChangedSpan {
        do throws(EnvelopeError) {
            var frames = try frames(old, before.lowerBound, count: shared.start, depth: depth)
            while let frame = frames.last {
                let childDepth = depth + frames.count
                var left = ChildReader(
                    JSONCursor(old), before.lowerBound + frame.childStart, end: before.upperBound, frame, childDepth)
                var right = ChildReader(
                    JSONCursor(new), after.lowerBound + frame.childStart, end: after.upperBound, frame, childDepth)
                if try runTogether(&left, &right, within: shared.end) {
                    var span = ChangedSpan(frames: frames, newStart: after.lowerBound + frame.start)
                    span.oldChildren = left.children
                    span.newChildren = right.children
                    span.reachesEnd = left.isAtEnd
                    return span
                }
                frames.removeLast()
            }
        } catch {
            throw .notJSON
        }
        throw .notJSON
    }

    private init(frames: [Frame], newStart: Int) {
        self.frames = frames
        self.newStart = newStart
    }

    /// Returns the containers that are open after the first `count` bytes of a value. A token that ends there, or beyond, counts
    /// as unread: in the other text it may be longer.
    private static func frames(
        _ text: UnsafeRawBufferPointer, _ start: Int, count: Int, depth: Int
    ) throws(EnvelopeError) -> [Frame] {
        var cursor = JSONCursor(text)
        cursor.at = start
        let end = start + count
        // The innermost container is stored separately from the outer ones, which change rarely.
        var outer: [Frame] = []
        var inner: Frame?
        var isName = false
        while true {
            let first = cursor.peek()
            guard cursor.at < end else { break }
            switch first {
            case 0x7B, 0x5B:
                if let inner { outer.append(inner) }
                guard depth + outer.count < JSONCursor.maximumDepth else { throw cursor.tooDeep() }
                isName = first == 0x7B
                cursor.at += 1
                inner = Frame(isObject: isName, start: cursor.at - 1 - start, childStart: cursor.at - start)
                continue
            case 0x7D, 0x5D:
                cursor.at += 1
                guard let around = outer.popLast() else { return [] }
                inner = around
                continue
            case 0x2C:
                cursor.at += 1
                inner?.index += 1
                inner?.childStart = cursor.at - start
                isName = inner?.isObject == true
                continue
            case 0x3A:
                cursor.at += 1
                continue
            case 0x22:
                let string = try cursor.string()
                if isName { inner?.name = JSONName(string, in: cursor) }
                isName = false
            default:
                _ = try cursor.value()
            }
        }
        return inner.map { outer + [$0] } ?? []
    }

    /// Reads children of both texts until equal numbers of bytes are left, within the common bytes; false if the texts do not
    /// converge in this container.
    private static func runTogether(
        _ left: inout ChildReader, _ right: inout ChildReader, within shared: Int
    ) throws(EnvelopeError) -> Bool {
        try left.advance()
        try right.advance()
        while true {
            if left.isLevel(with: right, within: shared) { return true }
            if left.isClosed, right.isClosed || left.left > shared { return false }
            if right.isClosed, right.left > shared { return false }
            if left.isClosed || !right.isClosed && left.left < right.left {
                try right.advance()
            } else {
                try left.advance()
            }
        }
    }
}

/// A reader of the children of a container, from one of them on.
private struct ChildReader {
    private var cursor: JSONCursor
    private let end: Int
    private let isObject: Bool
    private let depth: Int
    private var isFirst: Bool
    private(set) var children: [ChangedSpan.Child] = []
    private(set) var isClosed = false

    init(_ cursor: JSONCursor, _ start: Int, end: Int, _ frame: ChangedSpan.Frame, _ depth: Int) {
        self.cursor = cursor
        self.cursor.at = start
        self.end = end
        self.depth = depth
        isObject = frame.isObject
        isFirst = frame.index == 0
        // After a comma a child must follow; the reader starts at the comma.
        if !isFirst { self.cursor.at -= 1 }
    }

    /// The number of bytes that are not read yet.
    var left: Int { end - cursor.at }

    /// True if no child follows.
    var isAtEnd: Bool {
        var cursor = cursor
        let next = cursor.peek()
        return isClosed || next == 0x7D || next == 0x5D
    }

    mutating func advance() throws(EnvelopeError) {
        var name: JSONName?
        if isObject {
            name = try cursor.name(&isFirst).map { JSONName($0, in: cursor) }
            isClosed = name == nil
        } else {
            isClosed = try !cursor.hasElement(&isFirst)
        }
        guard !isClosed else { return }
        let value = try cursor.value(depth: depth)
        let start = Int(value.offset)
        children.append(
            ChangedSpan.Child(
                name: name ?? JSONName(UnsafeRawBufferPointer(start: nil, count: 0)),
                value: start..<start + Int(value.count)))
    }

    /// Returns whether both texts are equal from here on, within the common bytes, and at the same point of their structure.
    func isLevel(with other: ChildReader, within shared: Int) -> Bool {
        left == other.left && left <= shared && isClosed == other.isClosed
    }
}
