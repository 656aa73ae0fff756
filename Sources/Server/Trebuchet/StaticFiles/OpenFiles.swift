internal import Glibc
internal import Platform
internal import Synchronization
internal import WebSockets

/// Counts the files that are open because they are being sent. At a limit, the slowest reader is replaced.
final class OpenFiles: Sendable {
    /// The maximum number of replaced files that are not closed yet.
    private static let maximumReplaced = 64

    private struct Transfer {
        let host: AddressKey?
        let body: BodyTransfer
        let start: UInt64

        /// The host and its network, in which the transfer counts.
        var quotaKeys: Set<AddressKey> { host.map { [$0, $0.network] } ?? [] }

        /// The mean rate in bytes per second.
        func rate(at now: UInt64) -> Double { Double(body.acknowledgedBytes) / (Double(max(1, now &- start)) / 1e9) }
    }

    private struct State {
        var transfers: [UInt64: Transfer] = [:]
        /// The numbers of transfers of hosts and networks.
        var quotaKeys = UsageCounts<AddressKey, Int>()
        var lastNumber: UInt64 = 0
        /// The number of replaced files that are not closed yet.
        var replaced = 0

        /// Removes a transfer from the counts.
        mutating func remove(_ number: UInt64) -> Transfer? {
            guard let transfer = transfers.removeValue(forKey: number) else { return nil }
            for key in transfer.quotaKeys { quotaKeys.remove(1, from: key) }
            return transfer
        }

        /// Removes the slowest transfer that is older than `grace` and meets a condition.
        mutating func removeSlowest(
            at now: UInt64, grace: UInt64, where condition: (Transfer) -> Bool = { _ in true }
        ) -> BodyTransfer? {
            guard replaced < OpenFiles.maximumReplaced else { return nil }
            let slowest =
                transfers
                .filter { now &- $0.value.start >= grace && condition($0.value) }
                .min { $0.value.rate(at: now) < $1.value.rate(at: now) }
            guard let slowest, let removed = remove(slowest.key) else { return nil }
            replaced += 1
            return removed.body
        }

        /// Removes the slowest transfer of the hosts with the most transfers, if they have more than `host` would have.
        mutating func removeSlowest(insteadOf host: AddressKey?, at now: UInt64) -> BodyTransfer? {
            guard let host, let most = quotaKeys.keys.filter({ !$0.isNetwork }).map({ quotaKeys[$0] }).max()
            else { return nil }
            guard most > quotaKeys[host] + 1 else { return nil }
            let counts = quotaKeys
            return removeSlowest(at: now, grace: 0) { $0.host.map { counts[$0] == most } ?? false }
        }
    }

    private let most: Int
    private let maximumPerHost: Int
    /// The time for which a transfer is not replaced, since its rate is not known yet.
    private let grace: UInt64
    private let state = Mutex(State())

    init(_ limits: PageLimits) {
        most = limits.openFiles
        maximumPerHost = limits.openFilesPerHost
        grace = limits.transferInterval.nanoseconds / 10
    }

    /// The number of files in transfer.
    var count: Int { state.withLock { $0.transfers.count + $0.replaced } }

    /// Reserves one more open file. At a limit it takes the place of the slowest reader, of the host, of its network or of all, whose connection
    /// is then reset. If all are new, it takes the place of a host with more files than its own; nil if there is none. Loopback counts
    /// towards the total only.
    func reserveFile(for host: AddressKey?, at now: UInt64 = MonotonicClock.now) -> FileReservation? {
        let host = host.flatMap { $0.isLoopback ? nil : $0 }
        var slowest: BodyTransfer?
        let reservation = state.withLock { state -> FileReservation? in
            let body = BodyTransfer()
            let transfer = Transfer(host: host, body: body, start: now)
            if let full = transfer.quotaKeys.first(where: { isFull($0, state) }) {
                slowest = state.removeSlowest(at: now, grace: grace) { $0.quotaKeys.contains(full) }
            } else if state.transfers.count >= most {
                slowest =
                    state.removeSlowest(at: now, grace: grace) ?? state.removeSlowest(insteadOf: host, at: now)
            }
            guard state.transfers.count < most, !transfer.quotaKeys.contains(where: { isFull($0, state) }) else {
                return nil
            }
            state.lastNumber += 1
            state.transfers[state.lastNumber] = transfer
            for key in transfer.quotaKeys { state.quotaKeys.add(1, to: key) }
            return FileReservation(self, state.lastNumber, body)
        }
        slowest?.cancel()
        return reservation
    }

    /// Returns true if a host or a network has as many transfers as it may have.
    private func isFull(_ key: AddressKey, _ state: State) -> Bool {
        let limit = key.isNetwork ? NetworkQuota.limit(maximumPerHost) : maximumPerHost
        return state.quotaKeys[key] >= limit
    }

    private func release(_ number: UInt64) {
        state.withLock { state in
            if state.remove(number) == nil { state.replaced -= 1 }
        }
    }

    /// A reservation that counts until it is freed or replaced.
    final class FileReservation: Sendable {
        /// The transfer of the file, which ends when another one replaces it.
        let transfer: BodyTransfer
        private let files: OpenFiles
        private let number: UInt64

        fileprivate init(_ files: OpenFiles, _ number: UInt64, _ transfer: BodyTransfer) {
            self.files = files
            self.number = number
            self.transfer = transfer
        }

        deinit { files.release(number) }
    }
}

/// An open file, closed when the last reference is released.
final class OpenFile: Sendable {
    let descriptor: Int32
    private let reservation: OpenFiles.FileReservation?

    init(_ descriptor: Int32, _ reservation: OpenFiles.FileReservation?) {
        self.descriptor = descriptor
        self.reservation = reservation
    }

    deinit { close(descriptor) }

    /// Reads `count` bytes, or fewer at the end of the file; nil at the end and on a read error.
    func read(at offset: Int, _ count: Int) -> [UInt8]? {
        var done = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            while done < count {
                let got = pread(descriptor, buffer.baseAddress! + done, count - done, offset + done)
                if got < 0, errno == EINTR { continue }
                guard got > 0 else { break }
                done += got
            }
            used = done
        }
        return done > 0 ? bytes : nil
    }
}
