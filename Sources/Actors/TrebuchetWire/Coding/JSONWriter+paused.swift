internal import Bytes

/// Nested containers that are written alternately with their parents. Another writer writes each late part, which is inserted at
/// its position when the value ends.
extension JSONWriter {
    /// Returns the writer for a position that is not the top frame; nil if the position no longer exists.
    func resume(_ depth: Int, _ serial: UInt64) -> JSONWriter? {
        if depth <= top, frames[depth].serial == serial {
            guard !(depth + 1..<top + 1).contains(where: { frames[$0].isScope }) else {
                return refused(depth)
            }
            while top > depth { pause() }
            return self
        }
        return pausedIndex(serial).flatMap { rest(of: $0) }
    }

    /// Records an error: a value inside the frame has not ended, so there is no position for the output.
    private func refused(_ depth: Int) -> JSONWriter {
        failure =
            failure
            ?? .invalidValue(
                Any?.none as Any,
                .init(
                    codingPath: path(to: frames[depth].serial) ?? [],
                    debugDescription: "a value was written to its container while it was being encoded"))
        let lost = JSONWriter.discarding(frames[depth].kind)
        lost.isTooDeep = true
        return lost
    }

    private func rest(of index: Int) -> JSONWriter? {
        let entry = paused[index]
        if let rest = entry.rest { return rest.resume(0, rest.frames[0].serial) }
        guard entry.kind != .single else { return nil }
        let rest = JSONWriter(userInfo: userInfo)
        rest.parent = (self, entry.serial)
        _ = rest.push(entry.kind, isScope: true, level: entry.level)
        rest.firstIndex = entry.count
        paused[index].rest = rest
        return rest
    }

    private func pausedIndex(_ serial: UInt64) -> Int? { pausedIndices[serial] }

    private func pausedFrame(_ depth: Int, end: Int) -> PausedFrame {
        let frame = frames[depth]
        let outer = depth > 0 ? frames[depth - 1] : nil
        return PausedFrame(
            serial: frame.serial, kind: frame.kind, count: frame.count, level: frame.level,
            parent: outer?.serial ?? 0, position: outer.map { $0.kind == .single ? -1 : lastPosition(of: $0) } ?? -1,
            isNamed: outer?.kind == .object, end: end)
    }

    /// Pauses the top frame, because its parent is written to.
    private func pause() {
        pausedIndices[frames[top].serial] = paused.count
        paused.append(pausedFrame(top, end: buffer.count))
        if frames[top].kind == .empty { _ = rest(of: paused.count - 1) }
        if frames[top].kind != .empty { close(top) }
        top -= 1
    }

    /// Closes the top frame, because its value ends.
    func closeTop() {
        close(top)
        top -= 1
    }

    /// Inserts the late parts of the frames from index `first` on, which have ended.
    func splice(from first: Int) {
        defer { removePaused(from: first) }
        guard let start = paused[first...].first(where: { $0.rest != nil })?.end else { return }
        let tail = Array(buffer.bytes[start...])
        buffer.truncate(to: start)
        var taken = start
        // Frames are in the order of their ends, because each is added when it ends.
        for entry in paused[first...] {
            guard let rest = entry.rest else { continue }
            buffer.append(Array(tail[taken - start..<entry.end - start]))
            taken = entry.end
            append(rest, isBegun: entry.kind != .empty)
        }
        buffer.append(Array(tail[(taken - start)...]))
        hasRepeatedNames = true
    }

    private func append(_ rest: JSONWriter, isBegun: Bool) {
        while rest.top > 0 { rest.closeTop() }
        if !isBegun { rest.close(0) }
        rest.splice(from: 0)
        failure = failure ?? rest.failure
        isTooDeep = isTooDeep || rest.isTooDeep
        guard !rest.buffer.isEmpty else { return }
        let last = buffer.bytes.last
        if isBegun, last != UInt8(ascii: "["), last != UInt8(ascii: "{") { buffer.append(0x2C) }
        buffer.append(rest.buffer.bytes)
    }

    /// Removes the paused frames from an index on, because their parent has ended.
    func removePaused(from first: Int) {
        guard paused.count > first else { return }
        for entry in paused[first...] { pausedIndices[entry.serial] = nil }
        paused.removeSubrange(first...)
    }

    // MARK: Properties of a position

    func count(_ depth: Int, _ serial: UInt64) -> Int {
        if depth <= top, frames[depth].serial == serial { return firstIndex(depth) + frames[depth].count }
        guard let entry = pausedIndex(serial).map({ paused[$0] }) else { return 0 }
        return entry.rest.map { $0.firstIndex + $0.frames[0].count } ?? entry.count
    }

    private func firstIndex(_ depth: Int) -> Int { depth == 0 ? firstIndex : 0 }

    /// Returns the path to a frame, or nil if it no longer exists.
    func path(to serial: UInt64) -> [any CodingKey]? {
        if let depth = (0..<top + 1).last(where: { frames[$0].serial == serial }) {
            let before = parent.map { $0.writer.path(to: $0.serial) ?? [] } ?? []
            return before
                + (0..<depth).compactMap { depth in
                    let frame = frames[depth]
                    guard frame.kind == .object || frame.kind == .array, frame.count > 0 else { return nil }
                    return step(
                        frame.kind == .object, lastPosition(of: frame) + (frame.kind == .array ? firstIndex(depth) : 0))
                }
        }
        guard let entry = pausedIndex(serial).map({ paused[$0] }) else { return nil }
        return (path(to: entry.parent) ?? []) + (entry.position < 0 ? [] : [step(entry.isNamed, entry.position)])
    }

    /// The step from the top frame to the part that is being written.
    var lastStep: (any CodingKey)? {
        let frame = frames[top]
        guard frame.kind == .object || frame.kind == .array, frame.count > 0 else { return nil }
        return step(frame.kind == .object, lastPosition(of: frame) + (frame.kind == .array ? firstIndex(top) : 0))
    }

    private func step(_ isNamed: Bool, _ index: Int) -> any CodingKey {
        guard isNamed else { return JSONStep(index: index) }
        let name = writtenName(at: index)
        return JSONStep(stringValue: JSONString.text(name, isEscaped: name.contains(0x5C)))
    }

    /// Returns a writer whose output is discarded, for a position that no longer exists.
    static func discarding(_ kind: JSONFrame.Kind) -> JSONWriter {
        let writer = JSONWriter(userInfo: [:])
        _ = writer.push(kind, isScope: true)
        return writer
    }
}
