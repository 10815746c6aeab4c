"""Listens on a port in front of a server. While there is no file called `open',
the front misbehaves; otherwise it passes everything on. When that file is
removed, the front cuts connections and misbehaves again.

usage: front.py MODE SERVER

SERVER is the path of a socket, or host:port. The port is written to the file
`port', and a line for each connection to the file `met'.
"""
import asyncio
import os
import socket
import struct
import sys

MODE, SERVER = sys.argv[1:]
# What the modes do while the file does not exist: `refuse' does not listen before the file exists
# for the first time; `close' and `reset' end each connection in that way; `silent' does not answer;
# each name below sends its answer. `slow' passes everything on, with or without the file, and
# delays each answer by 20 ms.
ANSWERS = {
    'loading': b'-LOADING Redis is loading the dataset in memory\r\n',
    'useless': b"-ERR unknown command 'EVAL'\r\n",
    'foreign': b'HTTP/1.1 400 Bad Request\r\n\r\n',
}
assert MODE in ('refuse', 'close', 'reset', 'silent', 'slow', *ANSWERS)


def is_open():
    return MODE == 'slow' or os.path.exists('open')


async def opened():
    while not is_open():
        await asyncio.sleep(0.01)


async def copy(reader, writer, delay=0):
    try:
        while data := await reader.read(65536):
            await asyncio.sleep(delay)
            writer.write(data)
            await writer.drain()
    except OSError:
        pass


async def pass_on(reader, writer):
    if '/' in SERVER:
        far = await asyncio.open_unix_connection(SERVER)
    else:
        far = await asyncio.open_connection(*SERVER.rsplit(':', 1))
    copies = [asyncio.create_task(copy(reader, far[1])),
              asyncio.create_task(copy(far[0], writer,
                                       0.02 if MODE == 'slow' else 0))]
    while is_open() and not any(task.done() for task in copies):
        await asyncio.sleep(0.01)
    for task in copies:
        task.cancel()
    far[1].close()


async def misbehave(reader, writer):
    if MODE == 'reset':
        writer.get_extra_info('socket').setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    elif MODE == 'silent':
        await opened()
    while MODE in ANSWERS and await reader.read(65536):
        writer.write(ANSWERS[MODE])


async def serve(reader, writer):
    with open('met', 'a', encoding='ascii') as met:
        met.write('once\n')
    try:
        await (pass_on if is_open() else misbehave)(reader, writer)
    except OSError:
        pass
    writer.close()


async def main():
    listener = socket.socket()
    listener.bind(('127.0.0.1', 0))
    with open('port.new', 'w', encoding='ascii') as file:
        file.write(f'{listener.getsockname()[1]}\n')
    if MODE == 'refuse':
        os.rename('port.new', 'port')
        await opened()
    server = await asyncio.start_server(serve, sock=listener)
    if MODE != 'refuse':
        os.rename('port.new', 'port')
    await server.serve_forever()


asyncio.run(main())
