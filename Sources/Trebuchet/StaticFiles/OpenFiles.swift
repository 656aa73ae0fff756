internal import Glibc
internal import Synchronization
internal import WebSockets

/// Counts the files that are open because they are being sent.
final class OpenFiles: Sendable {
    /// The numbers of open files.
    private struct Counts {
        var all = 0
        /// Also of networks.
        var hosts: [AddressKey: Int] = [:]
    }

    private let most: Int
    private let maximumPerHost: Int
    private let counts = Mutex(Counts())

    init(_ limits: PageLimits) {
        most = limits.openFiles
        maximumPerHost = limits.openFilesPerHost
    }

    var count: Int { counts.withLock { $0.all } }

    /// Reserves one more open file; nil at the limit. Loopback counts towards the total only.
    func reserveFile(for host: AddressKey?) -> FileReservation? {
        let host = host.flatMap { $0.isLoopback ? nil : $0 }
        let isTaken = counts.withLock { counts in
            guard counts.all < most else { return false }
            if let host {
                let network = host.network
                guard counts.hosts[host, default: 0] < maximumPerHost,
                    network == host || counts.hosts[network, default: 0] < NetworkQuota.limit(maximumPerHost)
                else { return false }
                for party in Set([host, network]) { counts.hosts[party, default: 0] += 1 }
            }
            counts.all += 1
            return true
        }
        return isTaken ? FileReservation(self, host) : nil
    }

    private func release(_ host: AddressKey?) {
        counts.withLock { counts in
            counts.all -= 1
            guard let host else { return }
            for party in Set([host, host.network]) {
                let left = counts.hosts[party, default: 1] - 1
                counts.hosts[party] = left > 0 ? left : nil
            }
        }
    }

    /// A reservation that counts until it is freed.
    final class FileReservation: Sendable {
        private let files: OpenFiles
        private let host: AddressKey?

        fileprivate init(_ files: OpenFiles, _ host: AddressKey?) {
            self.files = files
            self.host = host
        }

        deinit { files.release(host) }
    }
}

/// An open file, closed when the last reference is released.
final class OpenFile: Sendable {
    let descriptor: Int32
    private let reservation: OpenFiles.FileReservation?

    init(_ descriptor: Int32, _ place: OpenFiles.FileReservation?) {
        self.descriptor = descriptor
        self.reservation = place
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
