#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// Replaces, adds or removes a member in the buffer of an object, without a copy of the other members.
struct JSONObjectEdit {
    private let name: UnsafeRawBufferPointer
    /// The canonical text of the new value; nil to remove the member.
    private let value: UnsafeRawBufferPointer?
    /// The index of the member.
    private let member: Int
    /// The number of members before the edit, and its change.
    private let (count, countChange): (Int, Int)
    private let isLong: Bool
    /// The size of the text.
    private let textCount: Int
    /// The part of the text that is replaced.
    private let cut: Range<Int>

    /// - Parameter name: as in the text, without quotes.
    /// - Returns: nil if there is no such member to remove.
    init?(of parts: JSONObjectParts, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer?) {
        let place = parts.place(of: name)
        if place.found == nil, value == nil { return nil }
        (self.name, self.value, member, count) = (name, value, place.index, parts.count)
        (isLong, textCount) = (parts.isLong, parts.text.count)
        let end = textCount - 1
        if place.found == nil {
            countChange = 1
            let start = member < count ? parts.nameStart(member) - 1 : end
            cut = start..<start
        } else if value != nil {
            countChange = 0
            cut = parts.valueStart(member)..<parts.valueEnd(member)
        } else {
            countChange = -1
            // With one comma, if there is one.
            let start = parts.nameStart(member) - 1
            cut =
                if member + 1 < count { start..<parts.nameStart(member + 1) - 1 } else {
                    start - (count > 1 ? 1 : 0)..<end
                }
        }
    }

    private var insertedCount: Int {
        guard let value else { return 0 }
        return countChange == 0 ? value.count : name.count + 3 + value.count + (count > 0 ? 1 : 0)
    }

    /// Returns false, without a change, if the buffer must be built again: its index would be too narrow, or it has a trailer.
    func apply(to buffer: inout [UInt8]) -> Bool {
        let flags = buffer[JSONObjectParts.flagsPlace]
        let change = insertedCount - cut.count
        guard flags & JSONObjectParts.trailer == 0, isLong || textCount + change <= 0xFFFF,
            textCount + change <= Int(UInt32.max)
        else { return false }
        let width = isLong ? 4 : 2
        let indexChange = 2 * width * countChange
        let oldText = JSONObjectParts.headerCount + 2 * width * count
        let text = oldText + indexChange
        if indexChange + change > 0 { buffer.append(contentsOf: repeatElement(0, count: indexChange + change)) }
        buffer.withUnsafeMutableBytes { bytes in
            let base = bytes.baseAddress.unsafelyUnwrapped
            // The members of the index that follow the edited one, and their new place.
            let following = (countChange == 1 ? member : member + 1)..<count
            let oldEntries = JSONObjectParts.headerCount + 2 * width * following.lowerBound
            func moveIndex() {
                memmove(base + oldEntries + indexChange, base + oldEntries, 2 * width * following.count)
            }
            func moveStart() { memmove(base + text, base + oldText, cut.lowerBound) }
            func moveEnd() {
                memmove(
                    base + text + cut.upperBound + change, base + oldText + cut.upperBound, textCount - cut.upperBound)
            }
            if countChange < 0 {
                moveIndex()
                moveStart()
                moveEnd()
            } else {
                moveEnd()
                if countChange > 0 {
                    moveStart()
                    moveIndex()
                }
            }
            func position(at place: Int) -> Int {
                isLong
                    ? Int(bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self))
                    : Int(bytes.loadUnaligned(fromByteOffset: place, as: UInt16.self))
            }
            func setPosition(_ position: Int, at place: Int) {
                if isLong {
                    bytes.storeBytes(of: UInt32(truncatingIfNeeded: position), toByteOffset: place, as: UInt32.self)
                } else {
                    bytes.storeBytes(of: UInt16(truncatingIfNeeded: position), toByteOffset: place, as: UInt16.self)
                }
            }
            for entry in 0..<2 * following.count {
                let place = oldEntries + indexChange + width * entry
                setPosition(position(at: place) + change, at: place)
            }
            bytes.storeBytes(of: UInt32(truncatingIfNeeded: count + countChange), as: UInt32.self)
            guard let value else { return }
            var scan = CanonicalJSON.Scan()
            _ = scan.end(ofValueAt: 0, value)
            bytes[4] = max(bytes[4], UInt8(min(1 + scan.depth, 255)))
            if scan.hasWideNumbers { bytes[JSONObjectParts.flagsPlace] |= JSONObjectParts.wideNumbers }
            var at = text + cut.lowerBound
            func append(_ byte: StaticString) {
                bytes[at] = byte.utf8Start.pointee
                at += 1
            }
            func append(_ source: UnsafeRawBufferPointer) {
                if let start = source.baseAddress { memcpy(base + at, start, source.count) }
                at += source.count
            }
            guard countChange == 1 else { return append(value) }
            if member == count, count > 0 { append(",") }
            append("\"")
            let nameStart = at - text
            append(name)
            append("\"")
            append(":")
            let entry = JSONObjectParts.headerCount + 2 * width * member
            setPosition(nameStart, at: entry)
            setPosition(at - text, at: entry + width)
            append(value)
            if member < count { append(",") }
        }
        if indexChange + change < 0 { buffer.removeLast(-(indexChange + change)) }
        return true
    }
}
