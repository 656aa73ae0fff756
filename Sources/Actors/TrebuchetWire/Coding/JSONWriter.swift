internal import Bytes

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// A JSON encoder that writes directly: when `encode` returns, the member is in the text, and no other representation exists.
///
/// Open values form a stack with one frame for each. A position (`JSONWriterPosition`) finds its frame by depth. The path to a position is
/// computed from the text on demand.
final class JSONWriter {
    /// The maximum nesting of arrays and objects; deeper text could not be read again.
    static let maximumDepth = 512
    /// The maximum nesting of values, including those that are neither arrays nor objects, because each uses stack space.
    static let deepestScopes = 4 * maximumDepth

    let userInfo: [CodingUserInfoKey: any Sendable]

    // Unchecked, because a check would cost more than most writes: no code here calls other code during a change.
    @exclusivity(unchecked) var buffer = ByteBuffer()
    /// The index of the current frame, or -1 without one.
    @exclusivity(unchecked) var top = -1
    /// The frames. Like the names, they are owned and behind a pointer, to avoid exclusivity checks.
    @exclusivity(unchecked) private(set) var frames: UnsafeMutablePointer<JSONFrame>
    @exclusivity(unchecked) private var frameCapacity = 16
    /// The member names of all open objects, concatenated.
    @exclusivity(unchecked) private var names: UnsafeMutablePointer<WrittenName>
    @exclusivity(unchecked) private var nameCapacity = 64
    @exclusivity(unchecked) private var lastSerial: UInt64 = 0
    @exclusivity(unchecked) var keyed = KeyedContainerPool<KeyedEncodingState>()

    /// True if an object may have a duplicate name, so that the text must be postprocessed.
    @exclusivity(unchecked) var hasRepeatedNames = false
    @exclusivity(unchecked) var isTooDeep = false
    /// The first error of a call that could not throw.
    @exclusivity(unchecked) var failure: EncodingError?
    /// The frame to which an object was last written in one piece, and the object's offset in the text.
    @exclusivity(unchecked) private var written: (serial: UInt64, start: Int) = (0, 0)
    @exclusivity(unchecked) var paused: [PausedFrame] = []
    /// The indices in `paused` by serial number.
    @exclusivity(unchecked) var pausedIndices: [UInt64: Int] = [:]
    /// The index of the first element in the late part of a paused array.
    @exclusivity(unchecked) var firstIndex = 0
    /// The owner of the late part of a paused frame.
    @exclusivity(unchecked) var parent: (writer: JSONWriter, serial: UInt64)?

    /// True if containers are pooled, which requires that the end of the encoding is reported.
    let isPooling: Bool

    init(userInfo: [CodingUserInfoKey: any Sendable], isPooling: Bool = false) {
        self.isPooling = isPooling
        self.userInfo = userInfo
        frames = .allocate(capacity: frameCapacity)
        names = .allocate(capacity: nameCapacity)
    }

    deinit {
        frames.deallocate()
        names.deallocate()
    }

    /// Appends the JSON of a value, or nothing if it throws.
    func encode<Value: Encodable>(_ value: Value, into target: inout ByteBuffer) throws {
        let start = target.count
        swap(&buffer, &target)
        defer {
            reset()
            swap(&buffer, &target)
        }
        do {
            try writeRoot(value)
            if let failure { throw failure }
            if isTooDeep { throw tooDeep(value) }
            if hasRepeatedNames { DuplicateNames.removeAll(from: &buffer, startingAt: start) }
        } catch {
            buffer.truncate(to: start)
            // The first error is the cause of the others.
            throw failure ?? error
        }
    }

    private func writeRoot<Value: Encodable>(_ value: Value) throws {
        if try writeKnown(value) { return }
        let position = push(isScope: true)
        try value.encode(to: ValueEncoder(position))
        while top > 0 { closeTop() }
        guard frames[0].kind != .empty else {
            throw EncodingError.invalidValue(
                value, .init(codingPath: [], debugDescription: "\(Value.self) encoded no value"))
        }
        close(0)
        if !paused.isEmpty { splice(from: 0) }
    }

    private func reset() {
        keyed.removeRetained()
        top = -1
        hasRepeatedNames = false
        isTooDeep = false
        failure = nil
        if !paused.isEmpty { removePaused(from: 0) }
        guard nameCapacity > 4096 else { return }
        names.deallocate()
        nameCapacity = 64
        names = .allocate(capacity: nameCapacity)
    }

    // MARK: Frames

    /// Starts a value.
    func push(_ kind: JSONFrame.Kind = .empty, isScope: Bool, level: Int? = nil) -> JSONWriterPosition {
        let outer = top >= 0 ? frames + top : nil
        let firstName = outer.map { $0.pointee.firstName + ($0.pointee.kind == .object ? $0.pointee.count : 0) } ?? 0
        let around = level ?? outer?.pointee.level ?? 0
        top += 1
        if top == frameCapacity { growFrames() }
        lastSerial += 1
        (frames + top).initialize(
            to: JSONFrame(
                kind: kind, isScope: isScope, serial: lastSerial, count: 0, firstName: firstName, level: around))
        return JSONWriterPosition(writer: self, depth: top, serial: lastSerial)
    }

    private func growFrames() {
        let larger = UnsafeMutablePointer<JSONFrame>.allocate(capacity: 2 * frameCapacity)
        larger.update(from: frames, count: frameCapacity)
        frames.deallocate()
        frames = larger
        frameCapacity *= 2
    }

    /// Turns the current frame into an array or an object.
    func open(_ kind: JSONFrame.Kind) {
        frames[top].kind = kind
        frames[top].level += 1
        if frames[top].level > Self.maximumDepth { isTooDeep = true }
        buffer.append(kind == .object ? 0x7B : 0x5B)
    }

    /// Writes the end of a frame.
    func close(_ depth: Int) {
        switch frames[depth].kind {
        case .empty: buffer.append("{}" as StaticString)
        case .single: break
        case .array: buffer.append(0x5D)
        case .object:
            if frames[depth].count > Self.comparedNames { compareNames(of: frames[depth]) }
            buffer.append(0x7D)
        }
    }

    /// Writes a value by its `encode(to:)`. `mark` is the state before the value's name.
    func writeScope<Value: Encodable>(_ value: Value, _ mark: Mark) throws {
        guard top < Self.deepestScopes, !isTooDeep else {
            let error = tooDeep(value)
            undo(mark)
            throw error
        }
        let outer = top
        let pausedBefore = paused.count
        do {
            try value.encode(to: ValueEncoder(push(isScope: true)))
        } catch {
            top = outer
            removePaused(from: pausedBefore)
            undo(mark)
            throw error
        }
        while top > outer + 1 { closeTop() }
        close(top)
        top = outer
        if paused.count > pausedBefore { splice(from: pausedBefore) }
    }

    /// Writes a value by its `write(json:)`. Its nesting is limited to the depth that the reader accepts in one pass.
    func writeDirectly<Value: DirectJSON>(_ value: Value) throws {
        let mark = mark
        do {
            if frames[top].level + JSONCursor.maximumDepth > Self.maximumDepth { throw tooDeep(value) }
            try value.write(json: &buffer)
        } catch {
            undo(mark)
            throw error
        }
    }

    /// Writes a value by the code generated for its type. Returns false, with the output unchanged, if that does not support the
    /// value.
    func write<Value: _WireValue>(wire value: Value) -> Bool {
        let mark = mark
        frames[top].kind = .single
        let level = frames[top].level
        let isWritten = withUnsafeMutablePointer(to: &buffer) { buffer in
            var writer = _WireWriter(buffer, level: level, source: self)
            return writer.writes(value)
        }
        if isWritten { written = (frames[top].serial, mark.bytes) } else { undo(mark) }
        return isWritten
    }

    /// Reopens an object that was written in one piece to the current frame, so that members can be added.
    ///
    /// - Returns: false if there is none.
    func reopen() -> Bool {
        let frame = frames + top
        guard frame.pointee.kind == .single, written.serial == frame.pointee.serial,
            buffer.bytes[written.start] == 0x7B
        else { return false }
        frame.pointee.kind = .object
        frame.pointee.level += 1
        buffer.truncate(to: buffer.count - 1)
        var at = written.start + 1
        while at < buffer.count {
            var cursor = JSONCursor(buffer.bytes)
            cursor.at = at
            _ = cursor.consume(0x2C)
            let offset = cursor.at
            guard (try? cursor.string()) != nil else { break }
            let end = cursor.at
            guard cursor.consume(0x3A), (try? cursor.value()) != nil else { break }
            at = cursor.at
            remember(nameAt: offset, until: end, frame)
            frame.pointee.count += 1
        }
        return true
    }

    func tooDeep(_ value: Any) -> EncodingError {
        .invalidValue(
            value,
            .init(
                codingPath: [],
                debugDescription:
                    "the value nests deeper than \(Self.maximumDepth) arrays and objects, or contains itself"))
    }

    // MARK: Members

    /// The state of the current frame before a member.
    struct Mark {
        let bytes: Int
        let count: Int
    }

    @inline(__always)
    var mark: Mark { Mark(bytes: buffer.count, count: top >= 0 ? frames[top].count : 0) }

    /// Removes the output since `mark`.
    func undo(_ mark: Mark) {
        buffer.truncate(to: mark.bytes)
        guard top >= 0 else { return }
        if frames[top].kind == .single { frames[top].kind = .empty }
        frames[top].count = mark.count
    }

    /// Starts an element.
    @inline(__always)
    func element() {
        if frames[top].count > 0 { buffer.append(0x2C) }
        frames[top].count += 1
    }

    /// Starts a member.
    func member(_ name: String) {
        let frame = frames + top
        if frame.pointee.count > 0 { buffer.append(0x2C) }
        let offset = buffer.count
        JSONString.append(name, to: &buffer)
        remember(nameAt: offset, until: buffer.count, frame)
        buffer.append(0x3A)
        frame.pointee.count += 1
    }

    /// The maximum number of names that are compared immediately; those of larger objects are compared when it ends.
    private static let comparedNames = 32

    @inline(__always)
    private func remember(nameAt offset: Int, until end: Int, _ frame: UnsafeMutablePointer<JSONFrame>) {
        let count = frame.pointee.count
        let first = frame.pointee.firstName
        let name = bytes(of: WrittenName(hash: 0, offset: UInt32(truncatingIfNeeded: offset)), until: end)
        let hash = NameTable.quickHash(name)
        if first + count == nameCapacity { growNames() }
        let own = names + first
        if count < Self.comparedNames {
            for index in 0..<count where own[index].hash == hash {
                if isSame(own[index], name) { hasRepeatedNames = true }
            }
        }
        (own + count).initialize(to: WrittenName(hash: hash, offset: UInt32(truncatingIfNeeded: offset)))
    }

    /// Returns the bytes of a name without its quotes; it ends with a quote before `removeRetained`.
    private func bytes(of name: WrittenName, until end: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: buffer.bytes[Int(name.offset) + 1..<end - 1])
    }

    /// Returns whether two names are equal. Names have one written form, so equal names have equal bytes, and the closing quote
    /// marks the end.
    private func isSame(_ written: WrittenName, _ name: UnsafeRawBufferPointer) -> Bool {
        let start = Int(written.offset) + 1
        guard buffer.count - start > name.count + 1, buffer.bytes[start + name.count] == 0x22 else { return false }
        return UnsafeRawBufferPointer(rebasing: buffer.bytes[start..<start + name.count]).elementsEqual(name)
    }

    private func growNames() {
        let larger = UnsafeMutablePointer<WrittenName>.allocate(capacity: 2 * nameCapacity)
        larger.update(from: names, count: nameCapacity)
        names.deallocate()
        names = larger
        nameCapacity *= 2
    }

    private func compareNames(of frame: JSONFrame) {
        guard !hasRepeatedNames else { return }
        var table = NameTable(capacity: frame.count)
        for index in 0..<frame.count {
            let name = writtenName(at: Int(names[frame.firstName + index].offset))
            if table.insert(name, index, { writtenName(at: Int(names[frame.firstName + $0].offset)) }) != index {
                hasRepeatedNames = true
                return
            }
        }
    }

    /// Returns the written bytes of the name whose quote is at `offset`.
    func writtenName(at offset: Int) -> UnsafeRawBufferPointer {
        var cursor = JSONCursor(buffer.bytes)
        cursor.at = offset
        guard let range = try? cursor.string() else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return cursor.bytes(range)
    }

    /// Returns the position within a frame of the part that is being written: the text offset of its name, or its index.
    func lastPosition(of frame: JSONFrame) -> Int {
        frame.kind == .object ? Int(names[frame.firstName + frame.count - 1].offset) : frame.count - 1
    }
}
