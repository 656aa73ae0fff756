internal import Bytes

#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// Writes what a value encodes as JSON, as it comes: each member is in the text when `encode` returns, and nothing else is kept of it.
///
/// What is open stands in each other as the calls do, one frame for each. A place (`JSONPlace`) finds its frame by its depth. The
/// path to a place is read from the text when somebody asks for it.
final class JSONWriter {
    /// How deep arrays and objects may nest: what is deeper could not be read again.
    static let deepest = 512
    /// How deep values may stand in each other, also those that are neither: the stack that they take is theirs.
    static let deepestScopes = 4 * deepest

    let dates: DateForm
    let userInfo: [CodingUserInfoKey: any Sendable]

    // Unchecked, since a check would cost more than most writes: nothing here calls others while it changes one.
    @exclusivity(unchecked) var buffer = ByteBuffer()
    /// The frame that is written to; -1 when there is none.
    @exclusivity(unchecked) var top = -1
    /// Owned, as are the names: behind pointers, so that they cost no checks.
    @exclusivity(unchecked) private(set) var frames: UnsafeMutablePointer<JSONFrame>
    @exclusivity(unchecked) private var frameCapacity = 16
    /// The names of the members of all open objects, one object's behind the other's.
    @exclusivity(unchecked) private var names: UnsafeMutablePointer<WrittenName>
    @exclusivity(unchecked) private var nameCapacity = 64
    @exclusivity(unchecked) private var lastSerial: UInt64 = 0
    @exclusivity(unchecked) var keyed = KeyedPool<KeyedWritingPlace>()

    /// Whether an object may have a name twice, so that the text must be gone through in the end.
    @exclusivity(unchecked) var hasRepeatedNames = false
    @exclusivity(unchecked) var isTooDeep = false
    /// What a call could not throw.
    @exclusivity(unchecked) var failure: EncodingError?
    /// The frame to which an object was written at once last, and where in the text that begins.
    @exclusivity(unchecked) private var written: (serial: UInt64, start: Int) = (0, 0)
    @exclusivity(unchecked) var paused: [PausedFrame] = []
    /// Where in `paused` each is, by its number.
    @exclusivity(unchecked) var pausedPlaces: [UInt64: Int] = [:]
    /// The index of the first element that the rest of a paused array has.
    @exclusivity(unchecked) var firstIndex = 0
    /// What the rest of a paused frame belongs to.
    @exclusivity(unchecked) var parent: (writer: JSONWriter, serial: UInt64)?

    /// Whether its containers are given out again: it says when it has ended.
    let isPooling: Bool

    init(dates: DateForm, userInfo: [CodingUserInfoKey: any Sendable], isPooling: Bool = false) {
        self.isPooling = isPooling
        self.dates = dates
        self.userInfo = userInfo
        frames = .allocate(capacity: frameCapacity)
        names = .allocate(capacity: nameCapacity)
    }

    deinit {
        frames.deallocate()
        names.deallocate()
    }

    /// Appends a value's JSON; nothing when it throws.
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
            if hasRepeatedNames { RepeatedNames.removeAll(from: &buffer, startingAt: start) }
        } catch {
            buffer.truncate(to: start)
            // The first one is the reason for the others.
            throw failure ?? error
        }
    }

    private func writeRoot<Value: Encodable>(_ value: Value) throws {
        if try writeKnown(value) { return }
        let place = push(isScope: true)
        try value.encode(to: ValueEncoder(place))
        while top > 0 { closeLoose() }
        guard frames[0].kind != .empty else {
            throw EncodingError.invalidValue(
                value, .init(codingPath: [], debugDescription: "\(Value.self) has encoded nothing"))
        }
        close(0)
        if !paused.isEmpty { splice(from: 0) }
    }

    private func reset() {
        keyed.end()
        top = -1
        hasRepeatedNames = false
        isTooDeep = false
        failure = nil
        if !paused.isEmpty { forgetPaused(from: 0) }
        guard nameCapacity > 4096 else { return }
        names.deallocate()
        nameCapacity = 64
        names = .allocate(capacity: nameCapacity)
    }

    // MARK: Frames

    /// Begins a value.
    func push(_ kind: JSONFrame.Kind = .empty, isScope: Bool, level: Int? = nil) -> JSONPlace {
        let outer = top >= 0 ? frames + top : nil
        let firstName = outer.map { $0.pointee.firstName + ($0.pointee.kind == .object ? $0.pointee.count : 0) } ?? 0
        let around = level ?? outer?.pointee.level ?? 0
        top += 1
        if top == frameCapacity { growFrames() }
        lastSerial += 1
        (frames + top).initialize(
            to: JSONFrame(
                kind: kind, isScope: isScope, serial: lastSerial, count: 0, firstName: firstName, level: around))
        return JSONPlace(writer: self, depth: top, serial: lastSerial)
    }

    private func growFrames() {
        let larger = UnsafeMutablePointer<JSONFrame>.allocate(capacity: 2 * frameCapacity)
        larger.update(from: frames, count: frameCapacity)
        frames.deallocate()
        frames = larger
        frameCapacity *= 2
    }

    /// Makes the frame that is written to an array or an object.
    func open(_ kind: JSONFrame.Kind) {
        frames[top].kind = kind
        frames[top].level += 1
        if frames[top].level > Self.deepest { isTooDeep = true }
        buffer.append(kind == .object ? 0x7B : 0x5B)
    }

    /// Writes a frame's end.
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

    /// Writes a value that encodes itself. The frame's `mark` is what it was before the value's name.
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
            forgetPaused(from: pausedBefore)
            undo(mark)
            throw error
        }
        while top > outer + 1 { closeLoose() }
        close(top)
        top = outer
        if paused.count > pausedBefore { splice(from: pausedBefore) }
    }

    /// Has a value write its own text. It nests no deeper by itself than what is read in one pass may.
    func writeDirectly<Value: DirectJSON>(_ value: Value) throws {
        let mark = mark
        do {
            if frames[top].level + JSONCursor.deepest > Self.deepest { throw tooDeep(value) }
            try value.write(json: &buffer)
        } catch {
            undo(mark)
            throw error
        }
    }

    /// Has a value write its own text by the code that was made for its type; false, and all is as before, when that is not for it.
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

    /// Makes the object that was written at once to the frame that is written to one that members may be added to.
    ///
    /// - Returns: false when there is none.
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
            _ = cursor.take(0x2C)
            let offset = cursor.at
            guard (try? cursor.string()) != nil else { break }
            let end = cursor.at
            guard cursor.take(0x3A), (try? cursor.value()) != nil else { break }
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
                debugDescription: "it nests deeper than \(Self.deepest) arrays and objects, or refers to itself"))
    }

    // MARK: Members

    /// What the frame that is written to was before a member.
    struct Mark {
        let bytes: Int
        let count: Int
    }

    @inline(__always)
    var mark: Mark { Mark(bytes: buffer.count, count: top >= 0 ? frames[top].count : 0) }

    /// Takes back what was written since.
    func undo(_ mark: Mark) {
        buffer.truncate(to: mark.bytes)
        guard top >= 0 else { return }
        if frames[top].kind == .single { frames[top].kind = .empty }
        frames[top].count = mark.count
    }

    /// Begins an element.
    @inline(__always)
    func element() {
        if frames[top].count > 0 { buffer.append(0x2C) }
        frames[top].count += 1
    }

    /// Begins a member.
    func member(_ name: String) {
        let frame = frames + top
        if frame.pointee.count > 0 { buffer.append(0x2C) }
        let offset = buffer.count
        JSONString.append(name, to: &buffer)
        remember(nameAt: offset, until: buffer.count, frame)
        buffer.append(0x3A)
        frame.pointee.count += 1
    }

    /// Names that are compared as they come; those of larger objects are when it ends.
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

    /// The bytes of a name, which ends with a quote before `end`, without its quotes.
    private func bytes(of name: WrittenName, until end: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: buffer.bytes[Int(name.offset) + 1..<end - 1])
    }

    /// Names are written in one way alone, so their bytes are the same when they are, and the quote behind them shows the end.
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

    /// The bytes of the name whose quote is there, as they are written.
    func writtenName(at offset: Int) -> UnsafeRawBufferPointer {
        var cursor = JSONCursor(buffer.bytes)
        cursor.at = offset
        guard let range = try? cursor.string() else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return cursor.bytes(range)
    }

    /// The step from a frame to what is being written of it.
    func lastPlace(of frame: JSONFrame) -> Int {
        frame.kind == .object ? Int(names[frame.firstName + frame.count - 1].offset) : frame.count - 1
    }
}
